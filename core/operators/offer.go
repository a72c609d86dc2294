package operators

import (
	"slices"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"
)

// offers says which plugin answers for which operator at a moment.
type offers map[string]*offer // by operator id

// offer is an operator and who answers for it.
type offer struct {
	sdk.Operator
	plugin *plugin
	stated bool // by the plugin itself, not only by its description
}

// plugin is a matcher and what the server has to do with it.
type plugin struct {
	name    string
	matcher atomic.Pointer[Matcher]
	// epoch counts the times the plugin was opened: what an earlier opening
	// said is not known of this one.
	epoch   atomic.Uint64
	version uint64
	deciding,
	background *lane
	pause pause // of compiling
}

func (p *plugin) asked() Matcher { return *p.matcher.Load() }

// look sees who offers what now; moved remembers that it has changed.
func (o *Operators) look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	next, changed := offers{}, false
	seen := map[string]bool{}
	for _, m := range o.list() {
		seen[m.Name()] = true
		p := o.plugins[m.Name()]
		if p == nil {
			p = o.newPlugin(m.Name())
			o.plugins[m.Name()] = p
			changed = true
		}
		list, version := m.Operators()
		if old := p.matcher.Swap(&m); old == nil || *old != m || version != p.version {
			p.version = version
			p.epoch.Add(1)
			changed = true
		}
		stated := version > 0
		if !stated {
			list = o.known(m.Use())
		}
		o.add(next, p, list, stated)
	}
	for name := range o.plugins {
		if !seen[name] {
			delete(o.plugins, name)
			changed = true
		}
	}
	if changed {
		o.offers.Store(&next)
		o.moved.Store(true)
		o.tellOfRivals()
	}
}

// add notes what a plugin offers. Of two that offer the same, the first one in
// the config answers.
func (o *Operators) add(next offers, p *plugin, list []sdk.Operator, stated bool) {
	for i := range list {
		if next[list[i].ID] == nil {
			next[list[i].ID] = &offer{Operator: list[i], plugin: p, stated: stated}
		}
	}
}

// tellOfRivals warns of operators that two plugins offer.
func (o *Operators) tellOfRivals() {
	for _, p := range o.plugins {
		list, _ := p.asked().Operators()
		for i := range list {
			if by := (*o.offers.Load())[list[i].ID].plugin; by != p {
				o.log.Warn("two plugins offer an operator; the first one in the config answers for it",
					zap.String("operator", list[i].ID), zap.String("asked", by.name), zap.String("ignored", p.name))
			}
		}
	}
}

// find returns who offers an operator. An operator that was not there a moment
// ago may be now.
func (o *Operators) find(id string) *offer {
	if f := (*o.offers.Load())[id]; f != nil {
		return f
	}
	o.look()
	return (*o.offers.Load())[id]
}

func (o *Operators) anyAvailable() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.plugins {
		if p.asked().Available() {
			return true
		}
	}
	return false
}

// Offered is an operator that can be used in filters.
type Offered struct {
	sdk.Operator
	Plugin    string // the instance that answers
	Available bool   // it can be asked now
}

// List returns all operators, by id.
func (o *Operators) List() []Offered {
	var out []Offered
	for _, f := range *o.offers.Load() {
		out = append(out, Offered{Operator: f.Operator, Plugin: f.plugin.name, Available: f.plugin.asked().Available()})
	}
	slices.SortFunc(out, func(a, b Offered) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}

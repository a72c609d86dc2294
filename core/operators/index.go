package operators

import (
	"slices"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"
)

// operatorIndex is an immutable index of operators by id.
type operatorIndex map[string]*indexedOperator

// indexedOperator is an operator with the plugin that evaluates it.
type indexedOperator struct {
	sdk.Operator
	plugin   *plugin
	reported bool // by the running plugin, not only by its bundled description
}

// plugin is a matcher with its limits and its openings.
type plugin struct {
	name    string
	matcher atomic.Pointer[Matcher]
	// epoch counts openings. Cached results of an earlier opening are invalid.
	epoch    atomic.Uint64
	version  uint64
	decide   *limiter
	action   *limiter
	cooldown cooldown // after a failed Compile
}

func (p *plugin) current() Matcher { return *p.matcher.Load() }

func (p *plugin) limiter(in purpose) *limiter {
	if in == forDecide {
		return p.decide
	}
	return p.action
}

// refreshIndex rebuilds the index when the plugins or their openings have changed.
func (o *Operators) refreshIndex() {
	o.mu.Lock()
	defer o.mu.Unlock()
	next, changed := operatorIndex{}, false
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
		reported := version > 0
		if !reported {
			list = o.bundled(m.Use())
		}
		next.add(p, list, reported)
	}
	for name := range o.plugins {
		if !seen[name] {
			delete(o.plugins, name)
			changed = true
		}
	}
	if changed {
		o.index.Store(&next)
		o.indexChanged.Store(true)
		o.warnDuplicates()
	}
}

// add adds the operators of a plugin. For an id of two plugins the first one in the
// configuration wins.
func (x operatorIndex) add(p *plugin, list []sdk.Operator, reported bool) {
	for i := range list {
		if x[list[i].ID] == nil {
			x[list[i].ID] = &indexedOperator{Operator: list[i], plugin: p, reported: reported}
		}
	}
}

// warnDuplicates logs operators that two plugins have.
func (o *Operators) warnDuplicates() {
	for _, p := range o.plugins {
		list, _ := p.current().Operators()
		for i := range list {
			if used := (*o.index.Load())[list[i].ID].plugin; used != p {
				o.log.Warn("plugin operator duplicated; the first plugin in the configuration is used",
					zap.String("operator", list[i].ID), zap.String("used", used.name), zap.String("ignored", p.name))
			}
		}
	}
}

// lookUp returns an operator, or nil. It refreshes the index for an unknown one, because
// its plugin may just have started.
func (o *Operators) lookUp(id string) *indexedOperator {
	if op := (*o.index.Load())[id]; op != nil {
		return op
	}
	o.refreshIndex()
	return (*o.index.Load())[id]
}

func (o *Operators) anyAvailable() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.plugins {
		if p.current().Available() {
			return true
		}
	}
	return false
}

// Offered is an operator that can be used in filters.
type Offered struct {
	sdk.Operator
	Plugin    string // the instance that evaluates it
	Available bool   // the instance can be called now
}

// List returns all operators, sorted by id.
func (o *Operators) List() []Offered {
	var out []Offered
	for _, op := range *o.index.Load() {
		out = append(out, Offered{Operator: op.Operator, Plugin: op.plugin.name, Available: op.plugin.current().Available()})
	}
	slices.SortFunc(out, func(a, b Offered) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}

// Package local serves the documents from which client libraries evaluate flags
// themselves.
//
// A document lists the flags of a project in the form that clients of all ages
// read: other flags by key with the chain of dependencies, cohorts as trees or
// inlined, percentages as integers where possible. Filters that a client cannot
// evaluate are marked. Documents are cached while the compiled flags of the
// project stay the same, so that the polls of many servers cost one comparison
// of tags each.
package local

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/match"
)

// Document returns the document for local evaluation in client libraries: every flag that is not deleted, on or off, the group types, and
// with sendCohorts the property trees of the cohorts these flags use. Without
// it a flag with one simple cohort is rewritten to filter by the properties of
// that cohort. Filters with an operator of a plugin are marked;
// operators, which may be nil, provides equivalent expressions for clients.
func Document(stored eval.ProjectDefinitions, sendCohorts bool, operators match.Registry) []byte {
	l := &builder{stored: stored, operators: operators, keys: map[int64]string{}, needs: map[int64][]int64{}, cohorts: map[int64]eval.CohortDefinition{}}
	for _, d := range stored.Flags {
		if !d.Deleted {
			l.keys[d.ID] = d.Key
			l.needs[d.ID] = document.FlagDependencies(d.Filters)
		}
	}
	for _, c := range stored.Cohorts {
		if !c.Deleted {
			l.cohorts[c.ID] = c
		}
	}
	return document.Encode(documentView{
		Flags:            l.flags(sendCohorts),
		GroupTypeMapping: groupTypeMapping(stored.GroupTypes),
		Cohorts:          l.trees(sendCohorts),
		MatchingVersion:  matchingVersion,
	})
}

type documentView struct {
	Flags            []flagView                 `json:"flags"`
	GroupTypeMapping map[string]string          `json:"group_type_mapping"`
	Cohorts          map[string]json.RawMessage `json:"cohorts"`
	MatchingVersion  int                        `json:"property_matching_version"`
}

// matchingVersion makes clients compare boolean-like values as the server does;
// without it posthog-node 5 uses an older rule.
const matchingVersion = 2

// flagView is the JSON form of a flag for clients.
type flagView struct {
	ID                   int64           `json:"id"`
	TeamID               int64           `json:"team_id"`
	Name                 string          `json:"name"`
	Key                  string          `json:"key"`
	Filters              json.RawMessage `json:"filters"`
	Deleted              bool            `json:"deleted"`
	Active               bool            `json:"active"`
	ExperienceContinuity bool            `json:"ensure_experience_continuity"`
	Version              int64           `json:"version"`
}

func groupTypeMapping(types map[string]int) map[string]string {
	out := make(map[string]string, len(types))
	for name, index := range types {
		out[strconv.Itoa(index)] = name
	}
	return out
}

// builder converts stored flags to the document.
type builder struct {
	stored    eval.ProjectDefinitions
	operators match.Registry
	keys      map[int64]string
	needs     map[int64][]int64
	cohorts   map[int64]eval.CohortDefinition
}

func (l *builder) flags(sendCohorts bool) []flagView {
	out := make([]flagView, 0, len(l.stored.Flags))
	for _, d := range l.stored.Flags {
		if d.Deleted {
			continue
		}
		out = append(out, flagView{
			ID: d.ID, TeamID: d.ProjectID, Name: d.Name, Key: d.Key, Filters: l.filters(d.Filters, sendCohorts),
			Active: d.Active, ExperienceContinuity: d.ExperienceContinuity, Version: d.Version,
		})
	}
	return out
}

// filters converts stored filters for clients: with condition sets, payloads as
// texts, whole percentages as integers, and other flags by their keys. Filters
// that cannot be parsed are sent unchanged.
func (l *builder) filters(filters json.RawMessage, sendCohorts bool) json.RawMessage {
	normal, err := document.Normalized(filters)
	if err != nil {
		return filters
	}
	d, err := document.Parse(normal)
	if err != nil {
		return filters
	}
	wholePercentages(d)
	textPayloads(d)
	if !sendCohorts {
		l.inlineCohort(d)
	}
	if !bytes.Contains(filters, []byte(`"flag"`)) && !bytes.ContainsRune(filters, '/') {
		return d.Raw()
	}
	return document.RewriteProperties(d.Raw(), document.ConditionLists, func(p *document.Object) {
		l.dependency(p)
		l.external(p)
	})
}

// external marks a filter with an operator of a plugin: with an equivalent
// expression, or as one that clients cannot evaluate.
func (l *builder) external(p *document.Object) {
	raw, _ := p.Get("operator")
	id, ok := document.Text(raw)
	if !ok || !strings.Contains(id, "/") {
		return
	}
	if l.operators != nil {
		if o, known := l.operators.Operator(id); known && o.Equivalent != "" {
			p.Set("equivalent", document.Quote(o.Equivalent))
			return
		}
	}
	p.Set("remote_only", []byte("true"))
}

// wholePercentages writes percentages like 45.0 as 45: older clients read
// integers only.
func wholePercentages(d *document.Object) {
	for _, name := range document.ConditionLists {
		eachObject(d, name, wholePercentage)
	}
	raw, _ := d.Get("multivariate")
	if m, err := document.Parse(raw); err == nil {
		eachObject(m, "variants", wholePercentage)
		d.Set("multivariate", m.Raw())
	}
}

func wholePercentage(o *document.Object) {
	raw, ok := o.Given("rollout_percentage")
	if !ok || document.KindOf(raw) != "number" || !bytes.ContainsAny(raw, ".eE") {
		return
	}
	if p, err := strconv.ParseFloat(string(raw), 64); err == nil && p == math.Trunc(p) {
		o.Set("rollout_percentage", strconv.AppendInt(nil, int64(p), 10))
	}
}

// eachObject lets fn change every object of a list in d.
func eachObject(d *document.Object, name string, fn func(o *document.Object)) {
	raw, _ := d.Get(name)
	list, err := document.ParseList(raw)
	if err != nil {
		return
	}
	for i, raw := range list {
		if o, err := document.Parse(raw); err == nil {
			fn(o)
			list[i] = o.Raw()
		}
	}
	d.Set(name, document.JoinList(list))
}

// textPayloads converts payloads that are not strings to JSON texts.
func textPayloads(d *document.Object) {
	raw, _ := d.Get("payloads")
	p, err := document.Parse(raw)
	if err != nil {
		return
	}
	for _, name := range slices.Clone(p.Names) {
		raw, _ := p.Get(name)
		switch document.KindOf(raw) {
		case "string":
		case "null":
			p.Remove(name)
		default:
			p.Set(name, document.Quote(string(raw)))
		}
	}
	d.Set("payloads", p.Raw())
}

// dependency names another flag by its key and lists the flags to decide first,
// that one last. The list is empty for a cycle or a missing flag: clients then
// ask the server.
func (l *builder) dependency(p *document.Object) {
	if raw, _ := p.Get("type"); string(raw) != `"flag"` {
		return
	}
	raw, _ := p.Get("key")
	id, ok := document.Integer(raw)
	if !ok {
		return
	}
	chain, ok := l.chain(id, nil, map[int64]bool{})
	names := []string{}
	for _, id := range chain {
		names = append(names, l.keys[id])
	}
	if !ok {
		names = []string{}
	}
	if key, known := l.keys[id]; known {
		p.Set("key", document.Quote(key))
	}
	p.Set("dependency_chain", document.Encode(names))
}

// chain appends the dependencies of a flag and the flag, in order of decision. It
// returns false for a missing flag or a cycle.
func (l *builder) chain(id int64, chain []int64, open map[int64]bool) ([]int64, bool) {
	if _, known := l.keys[id]; !known || open[id] {
		return chain, false
	}
	if slices.Contains(chain, id) {
		return chain, true
	}
	open[id] = true
	for _, next := range l.needs[id] {
		var ok bool
		if chain, ok = l.chain(next, chain, open); !ok {
			return chain, false
		}
	}
	delete(open, id)
	return append(chain, id), true
}

// Package local serves the documents from which client libraries evaluate flags
// themselves.
//
// A document lists the flags of a project in the form that clients of all ages
// read: other flags by key with the chain of dependencies, cohorts as trees or
// inlined, percentages as integers where possible. Filters that a client cannot
// evaluate are marked. A flag that a client would decide differently from the
// server is exported so that it asks the server; the User-Agent tells what it
// knows. Documents are cached while the compiled flags of the
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
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/match"
)

// Options select the form of a document.
type Options struct {
	// Cohorts adds the property trees of the cohorts that flags use. Without it a
	// flag with one simple cohort is rewritten to filter by the properties of that
	// cohort.
	Cohorts bool
	// Client evaluates the document.
	Client Client
	// Operators provides equivalent expressions for filters with an operator of a
	// plugin. Nil has none.
	Operators match.Registry
	// MinimalEvents tells clients to send their events about called flags with the
	// properties about the flag only.
	MinimalEvents bool
}

// Document returns the document for local evaluation in client libraries: every
// flag that is not deleted, on or off, the group types, and cohorts. Filters with
// an operator of a plugin are marked. A flag that the client would decide
// differently from the server has one condition set that the client cannot decide.
func Document(stored eval.ProjectDefinitions, opts Options) []byte {
	l := &builder{stored: stored, opts: opts, flagsByID: map[int64]*linkedFlag{}, cohorts: map[int64]eval.CohortDefinition{}}
	for i := range stored.Flags {
		if d := &stored.Flags[i]; !d.Deleted {
			l.flagsByID[d.ID] = linkOf(d)
		}
	}
	for _, c := range stored.Cohorts {
		if !c.Deleted {
			l.cohorts[c.ID] = c
		}
	}
	return document.Encode(documentView{
		Flags:            l.flags(),
		GroupTypeMapping: groupTypeMapping(stored.GroupTypes),
		Cohorts:          l.trees(opts.Cohorts),
		MatchingVersion:  matchingVersion,
		MinimalEvents:    opts.MinimalEvents,
	})
}

// linkedFlag is a flag as the flags that depend on it need it.
type linkedFlag struct {
	definition *eval.Definition
	key        string
	dependsOn  []int64
	groups     bool // it is about groups
}

func linkOf(d *eval.Definition) *linkedFlag {
	f := &linkedFlag{definition: d, key: d.Key, dependsOn: document.FlagDependencies(d.Filters)}
	if parsed, err := filters.Parse(d.Filters); err == nil {
		f.groups = bucketsGroups(&parsed)
	}
	return f
}

type documentView struct {
	Flags            []flagView                 `json:"flags"`
	GroupTypeMapping map[string]string          `json:"group_type_mapping"`
	Cohorts          map[string]json.RawMessage `json:"cohorts"`
	MatchingVersion  int                        `json:"property_matching_version"`
	MinimalEvents    bool                       `json:"minimal_flag_called_events,omitempty"`
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
	EncryptedPayloads    bool            `json:"has_encrypted_payloads"` // Filters has redacted ones
	Version              int64           `json:"version"`
	Bucketing            string          `json:"bucketing_identifier"`
	Runtime              string          `json:"evaluation_runtime"`
	Contexts             []string        `json:"evaluation_contexts"`
	ContextTags          []string        `json:"evaluation_tags"` // the older name of Contexts
	HasExperiment        bool            `json:"has_experiment"`
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
	opts      Options
	flagsByID map[int64]*linkedFlag
	cohorts   map[int64]eval.CohortDefinition
}

func (l *builder) flags() []flagView {
	out := make([]flagView, 0, len(l.stored.Flags))
	for i := range l.stored.Flags {
		if d := &l.stored.Flags[i]; !d.Deleted {
			out = append(out, l.flag(d))
		}
	}
	return out
}

func (l *builder) flag(d *eval.Definition) flagView {
	v := flagView{
		ID: d.ID, TeamID: d.ProjectID, Name: d.Name, Key: d.Key, Filters: l.filters(d),
		Active: d.Active, ExperienceContinuity: d.ExperienceContinuity && !d.ByDevice, EncryptedPayloads: d.Sealed, Version: d.Version,
		Bucketing: "distinct_id", Runtime: d.Runtime.String(), Contexts: d.Contexts,
	}
	if d.ByDevice {
		v.Bucketing = "device_id"
	}
	if v.Contexts == nil {
		v.Contexts = []string{}
	}
	v.ContextTags = v.Contexts
	return v
}

// filters converts stored filters for the client: with condition sets, payloads as
// texts, whole percentages as integers, dates as instants, and other flags by their
// keys. Filters that cannot be parsed are sent unchanged.
func (l *builder) filters(flag *eval.Definition) json.RawMessage {
	normal, err := document.Normalized(flag.Filters)
	if err != nil {
		return flag.Filters
	}
	d, err := document.Parse(normal)
	if err != nil {
		return flag.Filters
	}
	wholePercentages(d)
	textPayloads(d)
	if parsed, err := filters.Parse(normal); err == nil {
		if l.asks(flag, &parsed) {
			remoteOnly(d)
			return d.Raw()
		}
		currentHoldout(d, &parsed)
		if !l.opts.Cohorts {
			l.inlineCohort(d)
		}
		byGroup := parsed.Aggregation != nil
		return document.RewriteProperties(d.Raw(), document.ConditionLists, func(p *document.Object) {
			l.dependency(p, byGroup)
			l.external(p)
			instantOf(p)
		})
	}
	return d.Raw()
}

// external marks a filter with an operator of a plugin: with an equivalent
// expression, or as one that clients cannot evaluate.
func (l *builder) external(p *document.Object) {
	raw, _ := p.Get("operator")
	id, ok := document.Text(raw)
	if !ok || !strings.Contains(id, "/") {
		return
	}
	if l.opts.Operators != nil {
		if o, known := l.opts.Operators.Operator(id); known && o.Equivalent != "" {
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
// that one last. The list is empty if the client cannot decide them: for a cycle, a
// missing flag, or a flag of groups that it would decide with the wrong subject.
// Clients then ask the server.
func (l *builder) dependency(p *document.Object, byGroup bool) {
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
		f := l.flagsByID[id]
		names = append(names, f.key)
		ok = ok && (l.opts.Client.GroupDependencies || !f.groups && !byGroup)
	}
	if !ok {
		names = []string{}
	}
	if f := l.flagsByID[id]; f != nil {
		p.Set("key", document.Quote(f.key))
	}
	p.Set("dependency_chain", document.Encode(names))
}

// chain appends the dependencies of a flag and the flag, in order of decision. It
// returns false for a missing flag or a cycle.
func (l *builder) chain(id int64, chain []int64, open map[int64]bool) ([]int64, bool) {
	f := l.flagsByID[id]
	if f == nil || open[id] {
		return chain, false
	}
	if slices.Contains(chain, id) {
		return chain, true
	}
	open[id] = true
	for _, next := range f.dependsOn {
		var ok bool
		if chain, ok = l.chain(next, chain, open); !ok {
			return chain, false
		}
	}
	delete(open, id)
	return append(chain, id), true
}

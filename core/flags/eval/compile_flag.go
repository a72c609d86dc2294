package eval

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/guidonhq/guidon/core/flags/eval/bucket"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/match"
)

// flag is one compiled flag. The parts of answers are encoded in advance.
type flag struct {
	id         int64
	version    int64
	key        string
	prefix     string // key and dot: the start of the hashed text
	broken     error  // the definition cannot be decoded, or is over a limit
	cause      Cause  // of broken
	patterns   int64  // size of the compiled regular expressions
	conditions []condition
	variants   []variant
	enrolment  *enrolment
	holdout    *holdout
	subject    int32 // bucketed by default
	contexts   []string
	runtime    Runtime
	active     bool
	continuous bool
	device     bool // the definition buckets by device
	byDevice   bool // buckets persons by their device
	earlyExit  bool

	uses     uses
	constant outcome // of a flag whose value no request can change; else its stage is untouched

	quotedKey  string // "key":
	onPayload  string // for the value true: a JSON string, or empty
	recordHead string // "key":{"key":"key"
	recordTail string // ,"metadata":{"id":1,"version":1
}

type condition struct {
	filters         []filter
	rollout         rollout
	subject         int32
	variantOverride int32 // place of a variant, or noVariant
	external        bool  // a filter has an operator of a plugin
}

// rollout is a rollout percentage that is compared with buckets.
type rollout struct {
	percent  *float64 // as stored; nil is 100
	limit    float64  // the largest bucket inside
	everyone bool
	noOne    bool
}

func newRollout(percent *float64) rollout {
	if percent == nil || *percent >= 100 {
		return rollout{percent: percent, limit: 1, everyone: true}
	}
	return rollout{percent: percent, limit: *percent / 100, noOne: *percent <= 0}
}

type variant struct {
	from, to float64 // buckets in [from, to)
	key      string
	quoted   string // the key as JSON
	payload  string // a JSON string, or empty
}

// noVariant is the index for the value true.
const noVariant int32 = -1

type holdout struct {
	rollout rollout
	result  variant
}

// enrolment is the check for people who opted in or out.
type enrolment struct {
	slot      int32  // of the property; -1 if there is none
	property  string // its name
	condition condition
	plain     bool // feature_enrollment: only the value of the property decides
}

// flag compiles a flag. Every flag and cohort has its place by now.
func (c *compiler) flag(d *Definition) *flag {
	f := &flag{}
	c.uses = &f.uses
	c.compileFlag(f, d)
	f.constant = f.constantOutcome()
	return f
}

func (c *compiler) compileFlag(f *flag, d *Definition) {
	f.id, f.version, f.key, f.prefix = d.ID, d.Version, d.Key, d.Key+"."
	f.active, f.continuous, f.subject = d.Active, d.ExperienceContinuity && !d.ByDevice, person
	f.runtime, f.contexts = d.Runtime, d.Contexts
	quoted := string(match.AppendString(nil, d.Key))
	f.quotedKey = quoted + ":"
	f.recordHead = quoted + `:{"key":` + quoted
	f.recordTail = `,"metadata":{"id":` + strconv.FormatInt(d.ID, 10) + `,"version":` + strconv.FormatInt(d.Version, 10)
	f.device = d.ByDevice
	raw := d.Filters
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	parsed, err := filters.Parse(raw)
	if err != nil {
		f.broken, f.cause = err, CauseDefinition
		return
	}
	if f.patterns, err = c.programs.AdmitFlag(&parsed); err != nil {
		f.patterns, f.broken, f.cause = 0, err, CauseTooLarge
		return
	}
	c.values(f, &parsed)
	f.earlyExit = parsed.EarlyExit
	f.subject = c.subject(parsed.Aggregation)
	f.byDevice = d.ByDevice && f.subject == person
	f.enrolment = c.enrolment(f, &parsed)
	f.conditions = make([]condition, len(parsed.Groups))
	for i := range parsed.Groups {
		c.condition(f, &f.conditions[i], &parsed.Groups[i])
	}
}

// values compiles the possible values of a flag: variants, payloads, holdout.
func (c *compiler) values(f *flag, in *filters.Filters) {
	payload := func(name string) string {
		if text, ok := in.Payloads[name]; ok {
			return string(match.AppendString(nil, text))
		}
		return ""
	}
	f.onPayload = payload("true")
	total := 0.0
	for _, v := range in.Variants {
		from := total
		total += v.Rollout / 100
		f.variants = append(f.variants, variant{
			from: from, to: total, key: v.Key, quoted: string(match.AppendString(nil, v.Key)), payload: payload(v.Key),
		})
	}
	if in.Holdout != nil {
		name := bucket.HoldoutPrefix + in.Holdout.ID
		f.holdout = &holdout{
			rollout: newRollout(&in.Holdout.Exclusion),
			result:  variant{key: name, quoted: string(match.AppendString(nil, name)), payload: payload(name)},
		}
	}
}

func (c *compiler) condition(f *flag, out *condition, in *filters.ConditionSet) {
	out.rollout = newRollout(in.Rollout)
	out.subject = f.subject
	if in.AggregationSet {
		out.subject = c.subject(in.Aggregation)
	}
	out.variantOverride = noVariant
	if in.Variant != "" {
		out.variantOverride = int32(slices.IndexFunc(f.variants, func(v variant) bool { return v.key == in.Variant }))
	}
	out.filters = c.filters(in.Properties, out.subject)
	if n := len(out.filters); n > 0 {
		out.external = externalRank(&out.filters[n-1]) > 0 // external filters are last
	}
}

// enrolment compiles the check that precedes the condition sets. It reads person
// properties, also for flags that bucket groups.
func (c *compiler) enrolment(f *flag, in *filters.Filters) *enrolment {
	if in.Enrollment {
		name := "$feature_enrollment/" + f.key
		return &enrolment{plain: true, property: name, slot: c.slot(person, name)}
	}
	if len(in.SuperGroups) == 0 {
		return nil
	}
	first := in.SuperGroups[0]
	e := &enrolment{slot: -1, condition: condition{
		rollout: newRollout(first.Rollout), subject: person, variantOverride: noVariant, filters: c.filters(first.Properties, person),
	}}
	if len(first.Properties) > 0 {
		e.property = first.Properties[0].Key
		e.slot = c.slot(person, e.property)
	}
	return e
}

// constantOutcome returns the outcome of a flag that is the same for every request:
// it is off, or everyone or no one is inside its first condition sets. The stage of
// the outcome is untouched for any other flag.
func (f *flag) constantOutcome() outcome {
	switch {
	case !f.active:
		return off(ReasonDisabled, -1)
	case f.broken != nil, f.enrolment != nil, f.holdout != nil, f.byDevice, len(f.contexts) > 0:
		return outcome{}
	}
	best := off(ReasonNoGroupType, -1)
	for i := range f.conditions {
		c := &f.conditions[i]
		switch {
		case len(c.filters) > 0, c.subject != person, !c.rollout.everyone && !c.rollout.noOne:
			return outcome{}
		case c.rollout.noOne:
			best = off(ReasonOutOfRollout, int32(i))
			if f.earlyExit {
				return best
			}
		case c.variantOverride == noVariant && len(f.variants) > 0:
			return outcome{}
		default:
			return on(ReasonConditionMatch, int32(i), c.variantOverride)
		}
	}
	return best
}

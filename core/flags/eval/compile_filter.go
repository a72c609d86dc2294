package eval

import (
	"slices"
	"strconv"

	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/match"
)

// filterKind is the source of a filter's result.
type filterKind uint8

const (
	byProperty filterKind = iota
	byCohort
	byFlag
	byNothing // always unknown; cause is the reason
)

// filter is one compiled property filter of a condition set or a cohort.
type filter struct {
	test         *match.Filter       // of a property
	expect       filters.Expectation // of a flag
	slot         int32               // of a property
	fallbackSlot int32               // read if slot is empty; -1 for none
	reads        []int32             // of a property: the slots of an object to test instead
	target       int32               // place of a cohort or of a flag
	kind         filterKind
	cause        Cause
	negate       bool
	place        int32 // index in the definition
	source       *filters.Property
}

// filters compiles the properties of a set. Filters with operators of plugins
// come last, so that plugins are called only for undecided sets.
func (c *compiler) filters(in []filters.Property, subject int32) []filter {
	if len(in) == 0 {
		return nil
	}
	out := make([]filter, len(in))
	for i := range in {
		out[i] = c.filter(&in[i], subject)
		out[i].place = int32(i)
	}
	slices.SortStableFunc(out, func(a, b filter) int { return externalRank(&a) - externalRank(&b) })
	return out
}

func externalRank(f *filter) int {
	if f.kind == byProperty && f.test.External() {
		return 1
	}
	return 0
}

func (c *compiler) filter(p *filters.Property, subject int32) filter {
	f := filter{source: p, fallbackSlot: -1}
	switch p.Type {
	case "cohort":
		c.cohortFilter(&f, p)
	case "flag":
		c.flagFilter(&f, p)
	case "", "person", "group":
		c.propertyFilter(&f, p, subject)
	default:
		f.kind, f.cause = byNothing, CauseDefinition
	}
	return f
}

func (c *compiler) propertyFilter(f *filter, p *filters.Property, subject int32) {
	test, err := match.Compile(match.Spec{Key: p.Key, Operator: p.Operator, Value: p.Value}, c.opts)
	c.uses.operators = c.uses.operators || err != nil || test.External()
	if err != nil {
		f.kind, f.cause = byNothing, CauseOperator
		return
	}
	f.test = test
	if subject == unknownGroup {
		return
	}
	for _, name := range test.Reads() {
		f.reads = append(f.reads, c.slot(subject, name))
	}
	f.slot = c.slot(subject, p.Key)
	if later := filters.CurrentName(p.Key); subject == person && later != "" {
		f.fallbackSlot = c.slot(subject, later)
	}
}

func (c *compiler) cohortFilter(f *filter, p *filters.Property) {
	f.kind = byCohort
	switch p.Operator {
	case "", "exact", "in":
	case "not_in":
		f.negate = true
	default:
		f.kind, f.cause = byNothing, CauseOperator
		return
	}
	id, err := strconv.ParseInt(filters.Text(p.Value), 10, 64)
	at, known := c.set.cohortTable.Place(id)
	c.uses.cohorts = append(c.uses.cohorts, id)
	if err != nil || !known {
		f.kind, f.cause = byNothing, CauseCohort
		return
	}
	f.target = at
}

func (c *compiler) flagFilter(f *filter, p *filters.Property) {
	f.kind = byFlag
	at, ok := c.flagByName(p.Key)
	c.uses.flags = append(c.uses.flags, p.Key)
	if id, err := strconv.ParseInt(p.Key, 10, 64); err == nil {
		c.uses.flags = append(c.uses.flags, strconv.FormatInt(id, 10))
	}
	if !ok {
		f.kind, f.cause = byNothing, CauseDependency
		return
	}
	f.target = at
	f.expect = filters.ExpectationOf(p)
}

// flagByName finds a flag by its id or its key.
func (c *compiler) flagByName(name string) (int32, bool) {
	if id, err := strconv.ParseInt(name, 10, 64); err == nil {
		if at, ok := c.set.table.Place(id); ok {
			return at, true
		}
	}
	at, ok := c.set.byKey[name]
	return at, ok
}

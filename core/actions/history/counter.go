package history

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
)

// counter counts the events of a plan for one run. It is safe for concurrent use.
type counter struct {
	reader    *reader
	projectID int64
	actionID  int64 // 0 for a search for persons
	plan      *plan
	now       time.Time
	persons   *personTable
	logged    atomic.Bool
}

func newCounter(r *reader, projectID, actionID int64, p *plan, now time.Time) *counter {
	people := &personTable{events: r.events, projectID: projectID, names: p.personNames, known: map[string][]byte{}}
	return &counter{reader: r, projectID: projectID, actionID: actionID, plan: p, now: now, persons: people}
}

// quarterCounts is the result of a query: events by quarter, up to a row.
type quarterCounts struct {
	row       int64
	events    map[int64]int64
	undecided int64
}

// count counts the events that fit, in a range of time and rows. It leaves out
// events stored meanwhile.
func (c *counter) count(ctx context.Context, a events.HistoryQuery) (quarterCounts, error) {
	a.ProjectID, a.Any = c.projectID, c.plan.clauses
	if !c.plan.exact {
		return c.scan(ctx, a)
	}
	t, err := c.reader.events.CountHistory(ctx, &a, quarter)
	if err != nil {
		return quarterCounts{}, err
	}
	f := quarterCounts{row: t.Row, events: t.Events}
	if t.Ambiguous == 0 {
		return f, nil
	}
	a.Ambiguous = true
	if a.Through == 0 {
		a.Through = t.Row
	}
	more, err := c.scan(ctx, a)
	for q, n := range more.events {
		f.events[q] += n
	}
	return f, err
}

// scan reads the events that may fit and matches each.
func (c *counter) scan(ctx context.Context, a events.HistoryQuery) (quarterCounts, error) {
	f := quarterCounts{events: map[int64]int64{}}
	if a.Through == 0 {
		st, err := c.reader.events.Checkpoint(ctx, c.projectID)
		if err != nil {
			return f, err
		}
		a.Through = st.Row
		if st.Row == 0 {
			return f, nil
		}
	}
	f.row = a.Through
	err := c.matchEvents(ctx, a, func(e *events.HistoryEvent, r match.Result) {
		if r == match.True {
			f.events[quarterOf(e.Event.Timestamp)]++
		} else {
			f.undecided++
		}
	})
	return f, err
}

// eventsPerFacts is how many events share one set of facts. It bounds the
// memory for persons and the requests to plugins.
const eventsPerFacts = 2000

// maxPending is how many events wait for persons or plugins at most. It bounds the
// memory of a batch.
const maxPending = 500

// matchEvents calls fn for every event that fits or cannot be decided.
func (c *counter) matchEvents(ctx context.Context, a events.HistoryQuery, fn func(*events.HistoryEvent, match.Result)) error {
	a.Without |= c.plan.without
	j := &eventMatcher{c: c, ctx: ctx, fn: fn, env: match.Env{Now: c.now}}
	j.meter = actionmatch.NewMeter(&j.env)
	n := 0
	err := c.reader.events.ScanHistory(ctx, &a, func(e *events.HistoryEvent) error {
		if n%eventsPerFacts == 0 || len(j.pending) == maxPending {
			if err := j.flush(); err != nil {
				return err
			}
		}
		n++
		j.add(e)
		return nil
	})
	if err == nil {
		err = j.flush()
	}
	if err != nil {
		return fmt.Errorf("match the history: %w", err)
	}
	c.reportOverBudget(j.meter.Count())
	return nil
}

// reportOverBudget reports events that were not decided because that takes more
// work than one event may cause.
func (c *counter) reportOverBudget(n int64) {
	if report := c.reader.sources.OverBudget; report != nil && n > 0 {
		report(c.projectID, c.actionID)
	}
}

// eventMatcher matches events in batches.
type eventMatcher struct {
	c       *counter
	ctx     context.Context
	fn      func(*events.HistoryEvent, match.Result)
	env     match.Env
	view    actionmatch.EventView
	facts   batchFacts
	plugins actionmatch.Plugins
	meter   *actionmatch.Meter
	pending []events.HistoryEvent // wait for persons and for the answers of plugins
}

// flush matches the pending events with their persons and the answers of plugins,
// and begins the next batch.
func (j *eventMatcher) flush() error {
	if len(j.pending) > 0 {
		if err := j.decidePending(); err != nil {
			return err
		}
	}
	clear(j.pending)
	j.pending = j.pending[:0]
	j.c.logFactsError(j.facts.Facts)
	sources := &j.c.reader.sources
	j.facts = batchFacts{
		Facts: actionmatch.NewFacts(j.ctx, j.c.projectID, sources.Persons, sources.Members), persons: j.c.persons,
	}
	j.view.SetLookup(&j.facts)
	if j.c.plan.usesPlugins && sources.Plugins != nil {
		j.plugins = sources.Plugins()
		j.env.External = j.plugins
	}
	return nil
}

func (j *eventMatcher) decidePending() error {
	if j.c.plan.readsPerson {
		if err := j.facts.loadMissing(j.ctx, j.pending); err != nil {
			return err
		}
	}
	if j.plugins != nil {
		for i := range j.pending {
			j.match(&j.pending[i]) // collects the questions about persons
		}
		j.plugins.Ask(j.ctx)
	}
	for i := range j.pending {
		r := j.match(&j.pending[i])
		j.meter.Over(r)
		if r != match.False {
			j.fn(&j.pending[i], r)
		}
	}
	return nil
}

func (j *eventMatcher) add(e *events.HistoryEvent) {
	r := j.match(e)
	over := j.meter.Over(r)
	switch {
	case r == match.False:
	case r == match.Unknown && !over && (j.plugins != nil || j.view.Missing().Person):
		kept := *e
		kept.Event.Properties = bytes.Clone(e.Event.Properties)
		j.pending = append(j.pending, kept)
	default:
		j.fn(e, r)
	}
}

func (j *eventMatcher) match(e *events.HistoryEvent) match.Result {
	j.view.Reset(&e.Event)
	j.meter.Begin()
	return j.c.plan.matcher.Match(&j.view, &j.env)
}

// logFactsError logs the first failed read of facts; the events are undecided.
func (c *counter) logFactsError(facts *actionmatch.Facts) {
	if facts != nil && facts.Err() != nil && c.logged.CompareAndSwap(false, true) {
		c.reader.log.Warn("action count incomplete: loading properties or cohorts failed", zap.Int64("project_id", c.projectID), zap.Error(facts.Err()))
	}
}

package history

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
)

// counter counts the events of a plan for one run.
type counter struct {
	h         *History
	projectID int64
	plan      *plan
	now       time.Time
	told      bool
}

// found is what a question gave: events by quarter, up to a row.
type found struct {
	row       int64
	events    map[int64]int64
	undecided int64
}

// count counts the events that fit, in one time and one range of rows. What
// comes while it counts is not in it.
func (c *counter) count(ctx context.Context, a events.HistoryQuery) (found, error) {
	a.ProjectID, a.Any = c.projectID, c.plan.clauses
	if !c.plan.exact {
		return c.look(ctx, a)
	}
	t, err := c.h.past.CountHistory(ctx, &a, quarter)
	if err != nil {
		return found{}, err
	}
	f := found{row: t.Row, events: t.Events}
	if t.Ambiguous == 0 {
		return f, nil
	}
	a.Ambiguous = true
	if a.Through == 0 {
		a.Through = t.Row
	}
	more, err := c.look(ctx, a)
	for q, n := range more.events {
		f.events[q] += n
	}
	return f, err
}

// look reads the events that may fit and lets the matcher decide.
func (c *counter) look(ctx context.Context, a events.HistoryQuery) (found, error) {
	f := found{events: map[int64]int64{}}
	if a.Through == 0 {
		st, err := c.h.past.Checkpoint(ctx, c.projectID)
		if err != nil {
			return f, err
		}
		a.Through = st.Row
		if st.Row == 0 {
			return f, nil
		}
	}
	f.row = a.Through
	err := c.judge(ctx, a, func(e *events.HistoryEvent, r match.Result) {
		if r == match.True {
			f.events[quarterOf(e.Event.Timestamp)]++
		} else {
			f.undecided++
		}
	})
	return f, err
}

// judged is how many events one set of facts serves: what is known of people
// is not kept for a whole history, and what plugins are asked is bounded.
const judged = 2000

// judge calls fn for every event that the matcher lets through or cannot
// decide.
func (c *counter) judge(ctx context.Context, a events.HistoryQuery, fn func(*events.HistoryEvent, match.Result)) error {
	a.WithPersons = a.WithPersons || c.plan.person
	j := &judge{c: c, ctx: ctx, fn: fn, env: match.Env{Now: c.now}}
	n := 0
	err := c.h.past.ScanHistory(ctx, &a, func(e *events.HistoryEvent) error {
		if n%judged == 0 {
			j.turn()
		}
		n++
		j.hear(e)
		return nil
	})
	if err != nil {
		return fmt.Errorf("match the history: %w", err)
	}
	j.turn()
	return nil
}

// judge matches events, some at a time.
type judge struct {
	c       *counter
	ctx     context.Context
	fn      func(*events.HistoryEvent, match.Result)
	env     match.Env
	seen    actionmatch.Seen
	facts   *actionmatch.Facts
	plugins actionmatch.Plugins
	waiting []events.HistoryEvent // for what plugins say
}

// turn ends some events and begins others.
func (j *judge) turn() {
	if j.plugins != nil && len(j.waiting) > 0 {
		j.plugins.Ask(j.ctx)
	}
	for i := range j.waiting {
		if r := j.match(&j.waiting[i]); r != match.False {
			j.fn(&j.waiting[i], r)
		}
	}
	clear(j.waiting)
	j.waiting = j.waiting[:0]
	j.c.tell(j.facts)
	sources := &j.c.h.sources
	j.facts = actionmatch.NewFacts(j.ctx, j.c.projectID, sources.People, sources.Members)
	j.seen.Ask(j.facts)
	if j.c.plan.plugins && sources.Plugins != nil {
		j.plugins = sources.Plugins()
		j.env.External = j.plugins
	}
}

func (j *judge) hear(e *events.HistoryEvent) {
	switch r := j.match(e); {
	case r == match.False:
	case r == match.Unknown && j.plugins != nil:
		kept := *e
		kept.Event.Properties, kept.PersonProperties = bytes.Clone(e.Event.Properties), bytes.Clone(e.PersonProperties)
		j.waiting = append(j.waiting, kept)
	default:
		j.fn(e, r)
	}
}

func (j *judge) match(e *events.HistoryEvent) match.Result {
	j.seen.Reset(&e.Event)
	if j.c.plan.person {
		j.seen.SetPerson(e.PersonProperties)
	}
	return j.c.plan.matcher.Match(&j.seen, &j.env)
}

// tell logs what could not be found out; the events are undecided.
func (c *counter) tell(facts *actionmatch.Facts) {
	if facts != nil && facts.Err() != nil && !c.told {
		c.told = true
		c.h.log.Warn("events of the history cannot be decided", zap.Int64("project_id", c.projectID), zap.Error(facts.Err()))
	}
}

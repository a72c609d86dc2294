package actions

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

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
func (c *counter) count(ctx context.Context, a PastAsk) (found, error) {
	a.ProjectID, a.Any = c.projectID, c.plan.clauses
	if !c.plan.exact {
		return c.look(ctx, a)
	}
	t, err := c.h.past.Tally(ctx, &a, quarter)
	if err != nil {
		return found{}, err
	}
	f := found{row: t.Row, events: t.Events}
	if t.Open == 0 {
		return f, nil
	}
	a.Open = true
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
func (c *counter) look(ctx context.Context, a PastAsk) (found, error) {
	f := found{events: map[int64]int64{}}
	if a.Through == 0 {
		st, err := c.h.past.Standing(ctx, c.projectID)
		if err != nil {
			return f, err
		}
		a.Through = st.Row
		if st.Row == 0 {
			return f, nil
		}
	}
	f.row = a.Through
	err := c.judge(ctx, a, func(e *PastEvent, r match.Result) {
		if r == match.True {
			f.events[quarterOf(e.Event.Timestamp)]++
		} else {
			f.undecided++
		}
	})
	return f, err
}

// judged is how many events one set of facts serves: what is known of people
// is not kept for a whole history.
const judged = 2000

// judge calls fn for every event that the matcher lets through or cannot
// decide.
func (c *counter) judge(ctx context.Context, a PastAsk, fn func(*PastEvent, match.Result)) error {
	a.People = a.People || c.plan.person
	env := match.Env{Now: c.now, External: c.h.facts.External}
	var seen Seen
	var facts *Facts
	n := 0
	err := c.h.past.Scan(ctx, &a, func(e *PastEvent) error {
		if n%judged == 0 {
			c.tell(facts)
			facts = NewFacts(ctx, c.projectID, c.h.facts.People, c.h.facts.Members)
			seen.Ask(facts)
		}
		n++
		seen.Reset(&e.Event)
		if c.plan.person {
			seen.SetPerson(e.PersonProperties)
		}
		if r := c.plan.matcher.Match(&seen, &env); r != match.False {
			fn(e, r)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("match the history: %w", err)
	}
	c.tell(facts)
	return nil
}

// tell logs what could not be found out; the events are undecided.
func (c *counter) tell(facts *Facts) {
	if facts != nil && facts.Err() != nil && !c.told {
		c.told = true
		c.h.log.Warn("events of the history cannot be decided", zap.Int64("project_id", c.projectID), zap.Error(facts.Err()))
	}
}

package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
)

// PersonQuery says whose events are looked for: those of an action, or of an
// event name, in a time, that pass all of the filters.
type PersonQuery struct {
	Steps    []actionmatch.Step
	Location *time.Location
	Filters  []json.RawMessage
	From     time.Time // zero: the beginning
	To       time.Time // zero: now
}

// PersonPage is a part of the people of a query, in the order of their ids.
type PersonPage struct {
	Persons   []persons.Person
	More      bool
	Undecided int64
}

// Persons returns the persons, as they are now, who did what q asks for, after
// the first offset of them and at most limit. Events of distinct ids without a
// person have nobody. Who they are is kept for a while and brought up to date
// from newer events. It fails with an Unavailable fault when finding out takes
// longer than ctx has; the work goes on, and whoever asks again gets it.
func (h *Service) Persons(ctx context.Context, projectID int64, q PersonQuery, offset, limit int) (PersonPage, error) {
	p, err := q.plan(h.sources.Operators)
	if err != nil {
		return PersonPage{}, err
	}
	if p.neverMatches() {
		return PersonPage{Persons: []persons.Person{}}, nil
	}
	who, err := h.currentPersons(ctx, projectID, p, &q)
	if err != nil {
		return PersonPage{}, err
	}
	from := min(offset, len(who.ids))
	to := min(from+limit, len(who.ids))
	page := PersonPage{Persons: []persons.Person{}, More: to < len(who.ids), Undecided: who.undecided}
	if from == to {
		return page, nil
	}
	ids := who.ids[from:to]
	if page.Persons, err = h.persons.ByIDs(ctx, projectID, ids); err != nil {
		return PersonPage{}, fmt.Errorf("show the people of the history: %w", err)
	}
	slices.SortFunc(page.Persons, func(a, b persons.Person) int { return int(min(max(a.ID-b.ID, -1), 1)) })
	return page, nil
}

// plan compiles the steps with the filters added to each.
func (q *PersonQuery) plan(operators match.Registry) (*plan, error) {
	steps := slices.Clone(q.Steps)
	for i := range steps {
		steps[i].Properties = append(slices.Clone(steps[i].Properties), q.Filters...)
	}
	return newPlan(steps, q.Location, operators)
}

// personSet is who did something, up to a standing of the history.
type personSet struct {
	ids        []int64 // ascending
	undecided  int64
	checkpoint events.Checkpoint
	at         time.Time
}

// personSetTTL is how long a crowd is brought up to date before it is looked for
// anew: somebody can also get a person after the event.
const personSetTTL = 5 * time.Minute

// currentPersons returns a crowd as it is now.
func (h *Service) currentPersons(ctx context.Context, projectID int64, p *plan, q *PersonQuery) (*personSet, error) {
	key := personSetKey{projectID, p.fingerprint, q.From.UnixMicro(), q.To.UnixMicro()}
	st, err := h.events.Checkpoint(ctx, projectID)
	if err != nil {
		return nil, err
	}
	if c := h.personCache.get(key); c != nil && c.checkpoint == st && !h.expired(c, p) {
		return c, nil
	}
	s, mine := h.personCache.startSearch(key)
	if mine {
		if !h.addGoroutine() {
			h.personCache.finishSearch(key, s, nil, errStopping)
			return nil, errStopping
		}
		go func() {
			defer h.wg.Done()
			var c *personSet
			err := h.withSlot(nil, p, func() (err error) {
				c, err = h.findPersons(h.ctx, projectID, p, q, h.personCache.get(key))
				return err
			})
			h.personCache.finishSearch(key, s, c, err)
		}()
	}
	select {
	case <-s.done:
		return s.set, s.err
	case <-ctx.Done():
		return nil, errCalculating()
	}
}

// addGoroutine counts a goroutine that Stop waits for; false when it is too late.
func (h *Service) addGoroutine() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.stopped {
		h.wg.Add(1)
	}
	return !h.stopped
}

func (h *Service) expired(c *personSet, p *plan) bool {
	life := personSetTTL
	if p.timeDependent || c.undecided > 0 {
		life = min(life, h.cfg.Refresh)
	}
	return time.Since(c.at) > life
}

// findPersons finds a crowd, starting from an older one when that still holds.
func (h *Service) findPersons(ctx context.Context, projectID int64, p *plan, q *PersonQuery, old *personSet) (*personSet, error) {
	st, err := h.events.Checkpoint(ctx, projectID)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	ask := events.HistoryQuery{ProjectID: projectID, Any: p.clauses, From: q.From, To: q.To, Through: st.Row}
	if ask.To.IsZero() {
		ask.To = now
	}
	out := &personSet{checkpoint: st, at: now}
	if old != nil && !h.expired(old, p) && old.checkpoint.Erased == st.Erased && old.checkpoint.Persons == st.Persons {
		if ask.After = old.checkpoint.Row; ask.After == st.Row {
			return old, nil
		}
		out.ids, out.undecided, out.at = slices.Clone(old.ids), old.undecided, old.at
	} else {
		// The index of names holds no rows; what comes meanwhile does no harm.
		ask.Through = 0
	}
	if err := h.addPersons(ctx, p, ask, out); err != nil {
		return nil, fmt.Errorf("find the people of the history: %w", err)
	}
	slices.Sort(out.ids)
	out.ids = slices.Compact(out.ids)
	return out, nil
}

func (h *Service) addPersons(ctx context.Context, p *plan, ask events.HistoryQuery, out *personSet) error {
	if p.exact {
		ids, open, err := h.events.PersonIDs(ctx, &ask)
		out.ids = append(out.ids, ids...)
		if err != nil || !open {
			return err
		}
		ask.Ambiguous = true
	}
	ask.WithPersons = true
	c := &counter{h: h, projectID: ask.ProjectID, plan: p, now: out.at}
	had := map[int64]bool{}
	err := c.matchEvents(ctx, ask, func(e *events.HistoryEvent, r match.Result) {
		switch {
		case r == match.Unknown:
			out.undecided++
		case e.PersonRow != 0:
			had[e.PersonRow] = true
		}
	})
	for id := range had {
		out.ids = append(out.ids, id)
	}
	return err
}

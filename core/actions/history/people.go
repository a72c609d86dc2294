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

// PersonQuery selects the events whose persons are wanted: those that fit any
// of the steps, in a time, and pass all of the filters.
type PersonQuery struct {
	Steps    []actionmatch.Step
	Location *time.Location
	Filters  []json.RawMessage
	From     time.Time // zero: the beginning
	To       time.Time // zero: now
}

// personFinder finds the persons who did something and caches the answers.
type personFinder struct {
	reader  *reader
	persons Persons
	workers *workers
	refresh time.Duration // Config.Refresh
	cache   *personCache

	freshness *freshness
}

// PersonPage is a page of the persons of a query, by id.
type PersonPage struct {
	Persons   []persons.Person
	More      bool
	Undecided int64
}

// Persons returns the current persons who did what q asks for, after the first
// offset of them and at most limit. Events of distinct ids without a person are
// left out. The set of persons is cached and updated from newer events. It fails
// with an Unavailable fault if the search takes longer than ctx; the search goes
// on, and a later call returns its result.
func (h *Service) Persons(ctx context.Context, projectID int64, q PersonQuery, offset, limit int) (PersonPage, error) {
	return h.finder.page(ctx, projectID, q, offset, limit)
}

func (h *personFinder) page(ctx context.Context, projectID int64, q PersonQuery, offset, limit int) (PersonPage, error) {
	p, err := q.plan(h.reader.sources.Operators)
	if err != nil {
		return PersonPage{}, err
	}
	if p.neverMatches() {
		return PersonPage{Persons: []persons.Person{}}, nil
	}
	found, err := h.currentPersons(ctx, projectID, p, &q)
	if err != nil {
		return PersonPage{}, err
	}
	from := min(offset, len(found.ids))
	to := min(from+limit, len(found.ids))
	page := PersonPage{Persons: []persons.Person{}, More: to < len(found.ids), Undecided: found.undecided}
	if from == to {
		return page, nil
	}
	ids := found.ids[from:to]
	if page.Persons, err = h.persons.ByIDs(ctx, projectID, ids); err != nil {
		return PersonPage{}, fmt.Errorf("read the persons of the history: %w", err)
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

// personSet are the persons of a query, up to a checkpoint of the history.
type personSet struct {
	ids        []int64 // ascending
	undecided  int64
	checkpoint events.Checkpoint
	revision   int64 // of the cohorts
	at         time.Time
	took       time.Duration // of the search of all events
}

// personSetTTL is how long a set is updated before it is read again: a
// distinct id can get its person after the event.
const personSetTTL = 5 * time.Minute

// currentPersons returns the current set of a query.
func (h *personFinder) currentPersons(ctx context.Context, projectID int64, p *plan, q *PersonQuery) (*personSet, error) {
	key := personSetKey{projectID, p.fingerprint, q.From.UnixMicro(), q.To.UnixMicro()}
	st, err := h.reader.events.Checkpoint(ctx, projectID)
	if err != nil {
		return nil, err
	}
	revision, err := h.freshness.revision(ctx, projectID, p)
	if err != nil {
		return nil, err
	}
	if c := h.cache.get(key); c != nil && c.checkpoint == st && !h.expired(c, p, revision) {
		return c, nil
	}
	s, mine := h.cache.startSearch(key)
	if mine {
		started := h.workers.start(func(ctx context.Context) {
			var set *personSet
			err := h.workers.withSlot(nil, p, func() (err error) {
				set, err = h.findPersons(ctx, projectID, p, q, h.cache.get(key), revision)
				return err
			})
			h.cache.finishSearch(key, s, set, err)
		})
		if !started {
			h.cache.finishSearch(key, s, nil, errStopping)
			return nil, errStopping
		}
	}
	select {
	case <-s.done:
		return s.set, s.err
	case <-ctx.Done():
		return nil, errCalculating()
	}
}

func (h *personFinder) expired(c *personSet, p *plan, revision int64) bool {
	life := personSetTTL
	switch {
	case p.timeDependent:
		life = min(life, lifetime(c.took, h.refresh))
	case c.undecided > 0:
		life = min(life, h.refresh)
	}
	return c.revision != revision || time.Since(c.at) > life
}

// findPersons reads a set, and starts from an older one that is still valid.
func (h *personFinder) findPersons(ctx context.Context, projectID int64, p *plan, q *PersonQuery, old *personSet, revision int64) (*personSet, error) {
	st, err := h.reader.events.Checkpoint(ctx, projectID)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	ask := events.HistoryQuery{ProjectID: projectID, Any: p.clauses, From: q.From, To: q.To, Through: st.Row}
	if ask.To.IsZero() {
		ask.To = now
	}
	out := &personSet{checkpoint: st, revision: revision, at: now}
	if old != nil && !h.expired(old, p, revision) && old.checkpoint.Erased == st.Erased && old.checkpoint.Persons == st.Persons {
		if ask.After = old.checkpoint.Row; ask.After == st.Row {
			return old, nil
		}
		out.ids, out.undecided, out.at, out.took = slices.Clone(old.ids), old.undecided, old.at, old.took
	} else {
		// The index of names holds no rows. Newer events do no harm.
		ask.Through = 0
	}
	if err := h.addPersons(ctx, p, ask, out); err != nil {
		return nil, fmt.Errorf("find the persons of the history: %w", err)
	}
	out.took = max(out.took, time.Since(now))
	slices.Sort(out.ids)
	out.ids = slices.Compact(out.ids)
	return out, nil
}

func (h *personFinder) addPersons(ctx context.Context, p *plan, ask events.HistoryQuery, out *personSet) error {
	if p.exact {
		ids, open, err := h.reader.events.PersonIDs(ctx, &ask)
		out.ids = append(out.ids, ids...)
		if err != nil || !open {
			return err
		}
		ask.Ambiguous = true
	}
	ask.WithPersons = true
	c := &counter{reader: h.reader, projectID: ask.ProjectID, plan: p, now: out.at}
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

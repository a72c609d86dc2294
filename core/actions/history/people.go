package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions/history/background"
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
	workers *background.Workers
	refresh time.Duration // Config.Refresh
	maxWait time.Duration // Config.MaxWait
	cache   *personCache

	freshness *freshness
}

// PersonPage is a page of the persons of a query, by id.
type PersonPage struct {
	Persons   []persons.Person
	More      bool
	Undecided int64
	// Calculating reports that the search goes on: the page is from the persons that
	// are known so far, and Progress is how far the search is.
	Calculating bool
	Progress    background.Progress
}

// Persons returns the current persons who did what q asks for, after the first
// offset of them and at most limit. Events of distinct ids without a person are
// left out. The set of persons is cached, updated from newer events, and corrected
// when persons merge. Persons waits for a search for Config.MaxWait, and then
// returns what is known; see PersonPage.Calculating.
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
	found, running, err := h.currentPersons(ctx, projectID, p, &q)
	if err != nil {
		return PersonPage{}, err
	}
	from := min(offset, len(found.ids))
	to := min(from+limit, len(found.ids))
	page := PersonPage{Persons: []persons.Person{}, More: to < len(found.ids), Undecided: found.undecided}
	if running != nil {
		page.Calculating, page.Progress = true, running.progress.State()
	}
	if from == to {
		return page, nil
	}
	ids := found.ids[from:to]
	if page.Persons, err = h.persons.ByIDs(ctx, projectID, ids); err != nil {
		return PersonPage{}, fmt.Errorf("read the persons of the history: %w", err)
	}
	slices.SortFunc(page.Persons, func(a, b persons.Person) int { return cmp.Compare(a.ID, b.ID) })
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

// currentPersons returns the set of a query. If it is not complete in time, it
// returns what is known and the search that goes on.
func (h *personFinder) currentPersons(ctx context.Context, projectID int64, p *plan, q *PersonQuery) (*personSet, *search, error) {
	key := personSetKey{projectID, p.fingerprint, q.From.UnixMicro(), q.To.UnixMicro()}
	st, err := h.reader.events.Checkpoint(ctx, projectID)
	if err != nil {
		return nil, nil, err
	}
	revision, err := h.freshness.revision(ctx, projectID, p)
	if err != nil {
		return nil, nil, err
	}
	old := h.cache.get(key)
	if old != nil && old.checkpoint == st && !h.expired(old, p, revision) {
		return old, nil, nil
	}
	s, mine := h.cache.startSearch(key, p)
	if mine {
		started := h.workers.Start(func(ctx context.Context) {
			var set *personSet
			err := h.workers.WithSlot(p.exact, func() (err error) {
				set, err = h.findPersons(ctx, s, projectID, p, q, h.cache.get(key), revision)
				return err
			})
			if err != nil && ctx.Err() == nil {
				h.reader.log.Error("search for persons of an action failed", zap.Int64("project_id", projectID), zap.Error(err))
			}
			h.cache.finishSearch(key, s, set, err)
		})
		if !started {
			h.cache.finishSearch(key, s, nil, background.ErrStopping)
			return nil, nil, background.ErrStopping
		}
	}
	patience := time.NewTimer(h.maxWait)
	defer patience.Stop()
	select {
	case <-s.done:
		return s.set, nil, s.err
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-patience.C:
		return s.known(old), s, nil
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
func (h *personFinder) findPersons(ctx context.Context, s *search, projectID int64, p *plan, q *PersonQuery, old *personSet, revision int64) (*personSet, error) {
	st, err := h.reader.events.Checkpoint(ctx, projectID)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	ask := events.HistoryQuery{ProjectID: projectID, Any: p.clauses, From: q.From, To: q.To}
	if ask.To.IsZero() {
		ask.To = now
	}
	out := &personSet{checkpoint: st, revision: revision, at: now}
	var parts []events.HistoryQuery
	if old != nil && !h.expired(old, p, revision) && old.checkpoint.Erased == st.Erased && old.checkpoint.Persons == st.Persons {
		if old.checkpoint.Row == st.Row {
			return old, nil
		}
		s.add(old.ids, old.undecided)
		out.at, out.took = old.at, old.took
		parts = partsByRow(&ask, old.checkpoint.Row, st.Row)
	} else if parts, err = h.partsByTime(ctx, p, &ask); err != nil {
		return nil, err
	}
	f := &personSearch{search: s, counter: newCounter(h.reader, projectID, 0, p, now), found: map[string]struct{}{}}
	s.progress.Expect(len(parts))
	if err := background.InParallel(ctx, h.workers, parts, f.addPart); err != nil {
		return nil, fmt.Errorf("find the persons of the history: %w", err)
	}
	out.took = max(out.took, time.Since(now))
	known := s.known(nil)
	out.ids, out.undecided = known.ids, known.undecided
	return out, nil
}

// Bounds of the parts of a search.
const (
	dayPart   = 24 * time.Hour      // of a search that reads events
	indexPart = 15 * 24 * time.Hour // of a search that an index answers
	maxParts  = 400                 // parts of one search
)

// partsByTime splits a query into times, the newest first. Events that are stored
// meanwhile do no harm.
func (h *personFinder) partsByTime(ctx context.Context, p *plan, q *events.HistoryQuery) (parts []events.HistoryQuery, err error) {
	first := q.From
	if first.IsZero() {
		if first, err = h.reader.events.FirstEvent(ctx, q.ProjectID); err != nil || first.IsZero() {
			return nil, err
		}
	}
	width := dayPart
	if p.exact {
		width = indexPart
	}
	width = max(width, q.To.Sub(first)/maxParts)
	for to := q.To; to.After(first); to = to.Add(-width) {
		part := *q
		part.From, part.To = to.Add(-width), to
		if part.From.Before(first) {
			part.From = first
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func partsByRow(q *events.HistoryQuery, after, through int64) (parts []events.HistoryQuery) {
	for _, rows := range splitRows(after, []int64{through}) {
		part := *q
		part.After, part.Through = rows[0], rows[1]
		parts = append(parts, part)
	}
	return parts
}

// personSearch is a search in progress.
type personSearch struct {
	search  *search
	counter *counter

	mu    sync.Mutex
	found map[string]struct{} // distinct ids whose persons were read
}

// addPart adds the persons of a part of the history.
func (f *personSearch) addPart(ctx context.Context, q events.HistoryQuery) error {
	ids, undecided, err := f.distinctIDs(ctx, q)
	if err != nil {
		return err
	}
	fresh := f.markFound(ids)
	var rows []int64
	err = f.counter.reader.events.Persons(ctx, q.ProjectID, fresh, false, func(p *events.HistoryPerson) error {
		rows = append(rows, p.Row)
		return nil
	})
	if err != nil {
		return err
	}
	f.search.add(rows, undecided)
	f.search.progress.Step()
	return nil
}

// markFound returns the distinct ids that no other part has found.
func (f *personSearch) markFound(ids map[string]struct{}) (fresh []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range ids {
		if _, known := f.found[id]; !known {
			f.found[id] = struct{}{}
			fresh = append(fresh, id)
		}
	}
	return fresh
}

// distinctIDs returns the distinct ids of the events that fit.
func (f *personSearch) distinctIDs(ctx context.Context, q events.HistoryQuery) (ids map[string]struct{}, undecided int64, err error) {
	ids = map[string]struct{}{}
	if f.counter.plan.exact {
		var ambiguous bool
		if ids, ambiguous, err = f.counter.reader.events.DistinctIDs(ctx, &q); err != nil || !ambiguous {
			return ids, 0, err
		}
		q.Ambiguous = true
	}
	err = f.counter.matchEvents(ctx, q, func(e *events.HistoryEvent, r match.Result) {
		if r == match.Unknown {
			undecided++
		} else {
			ids[e.Event.DistinctID] = struct{}{}
		}
	})
	return ids, undecided, err
}

// Package stage applies a batch of events to persons and groups.
//
// Process handles a batch project by project. It parses each event once
// (parsedEvent), loads the persons, groups and group types that the batch names
// in one query each (loadPlan), applies the events in order in memory
// (batchState), and writes the differences in a few statements, all inside the
// transaction of the ingestion worker. It creates persons, applies $set,
// $set_once and $unset, follows $identify, $create_alias and
// $merge_dangerously, and keeps group types and group properties. Processing a
// batch twice has the effect of processing it once.
//
// On PostgreSQL two nodes may run the stage at the same time. Rows are locked
// in the order of their ids. An attempt that meets a distinct id, group or
// group type that another node has just written is rolled back to its
// savepoint and repeated on the new state. SQLite has one writer, so there an
// attempt never conflicts.
//
// The package does not answer queries; the persons package does. It reports
// what changed to Deps.Committed after the commit.
package stage

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// maxAttempts bounds the retries after conflicts with other nodes. In each
// conflict one of the nodes makes progress.
const maxAttempts = 12

// MergeHook moves the data of another package from the persons from to the persons into,
// for the merges of a batch in their order: from[i] was merged into into[i], which may be
// from[k] of a later merge. It runs inside the transaction of the merges, before the
// persons are deleted; an error rolls the whole batch back. Where both persons have data,
// that of into wins.
type MergeHook func(ctx context.Context, projectID int64, from, into []int64) error

// Deps are the settings and callbacks of a Stage.
type Deps struct {
	DB         *db.DB
	GroupTypes int                   // maximum number of group types of a project
	Registerer prometheus.Registerer // optional
	// Committed is called with the changes of each project after the commit.
	Committed func(*Changes)
}

// Stage processes batches. Its methods may be called concurrently.
type Stage struct {
	deps       Deps
	store      batchStore
	personless personlessCache
	mergeHooks []MergeHook
	metrics    metrics
}

// New returns a Stage.
func New(deps Deps) *Stage {
	return &Stage{deps: deps, store: newBatchStore(deps.DB), metrics: newMetrics(deps.Registerer)}
}

// OnMerge adds a hook. All hooks must be added before the first batch.
func (s *Stage) OnMerge(h MergeHook) { s.mergeHooks = append(s.mergeHooks, h) }

type metrics struct{ created, merged, rejected, retried prometheus.Counter }

func newMetrics(reg prometheus.Registerer) metrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: "guidon", Subsystem: "persons", Name: name, Help: help})
	}
	return metrics{
		created:  counter("created_total", "Persons created by the ingestion stage."),
		merged:   counter("merged_total", "Persons merged into another one."),
		rejected: counter("merges_refused_total", "Requested merges that are not allowed."),
		retried:  counter("stage_retries_total", "Attempts of the stage repeated after a change by another node."),
	}
}

// Process applies the events of batch in order to persons and groups. It joins
// the transaction in ctx, or makes one.
//
// On success each event has its PersonID, and events that name groups carry a
// property $group_<index> for each. The warnings are for the owners of the
// projects. On an error the caller must roll back and may retry the same
// batch.
func (s *Stage) Process(ctx context.Context, batch []*sdk.Event) ([]Warning, error) {
	buf := acquireBuffers(len(batch))
	defer buf.release()
	var warnings []Warning
	for i, ev := range batch {
		if w := buf.events[i].parse(ev); w != nil {
			warnings = append(warnings, *w)
		}
	}
	var states []*batchState
	err := s.deps.DB.Tx(ctx, func(ctx context.Context) error {
		states = states[:0]
		for _, events := range byProject(buf.events) {
			b, err := s.processProject(ctx, events)
			if err != nil {
				return fmt.Errorf("process persons of project %d: %w", events[0].ev.ProjectID, err)
			}
			states = append(states, b)
			s.deps.DB.AfterCommit(ctx, func() { s.afterCommit(b) })
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, b := range states {
		warnings = append(warnings, b.warnings...)
	}
	for i := range buf.events {
		buf.events[i].writeResults()
	}
	return warnings, nil
}

// byProject splits events by project, ascending, and keeps their order within
// each. All nodes lock in this order.
func byProject(events []parsedEvent) [][]*parsedEvent {
	parts := map[int64][]*parsedEvent{}
	var order []int64
	for i := range events {
		id := events[i].ev.ProjectID
		if parts[id] == nil {
			order = append(order, id)
			parts[id] = make([]*parsedEvent, 0, len(events)-i)
		}
		parts[id] = append(parts[id], &events[i])
	}
	slices.Sort(order)
	out := make([][]*parsedEvent, len(order))
	for i, id := range order {
		out[i] = parts[id]
	}
	return out
}

// processProject processes the events of one project.
func (s *Stage) processProject(ctx context.Context, events []*parsedEvent) (*batchState, error) {
	plan := planLoad(events)
	for attempt := range maxAttempts {
		b := newBatchState(events[0].ev.ProjectID)
		b.attempt, b.groups.limit = attempt, s.deps.GroupTypes
		if attempt > 2 {
			b.newUUID = uuid.NewString // the derived uuid may belong to another person
		}
		done, err := s.store.attempt(ctx, func(ctx context.Context) (bool, error) {
			return s.applyBatch(ctx, b, plan, events)
		})
		if err != nil {
			return nil, err
		}
		if done {
			return b, nil
		}
		s.metrics.retried.Inc()
	}
	return nil, fault.New(fault.Unavailable, "merge_race_condition", "Other nodes keep changing the same persons.")
}

// applyBatch loads, applies and saves. It returns false after a conflict with
// another node.
func (s *Stage) applyBatch(ctx context.Context, b *batchState, plan *loadPlan, events []*parsedEvent) (bool, error) {
	if err := s.store.load(ctx, b, plan); err != nil {
		return false, err
	}
	for _, f := range events {
		b.applyEvent(f)
	}
	b.newPersonless = slices.DeleteFunc(b.newPersonless, func(id string) bool { return s.personless.has(b.project, id) })
	return s.store.save(ctx, b, func(ctx context.Context) error { return s.runMergeHooks(ctx, b) })
}

// runMergeHooks calls the hooks with the merges of stored persons, in order. A
// person created and merged within the batch is unknown to other packages.
func (s *Stage) runMergeHooks(ctx context.Context, b *batchState) error {
	var from, into []int64
	for _, m := range b.merges {
		if m.from.id == 0 {
			continue
		}
		to := m.into
		for to.id == 0 {
			to = to.into
		}
		from, into = append(from, m.from.id), append(into, to.id)
	}
	if len(from) == 0 {
		return nil
	}
	for _, hook := range s.mergeHooks {
		if err := hook(ctx, b.project, from, into); err != nil {
			return fmt.Errorf("follow the merge of persons %v into %v: %w", from, into, err)
		}
	}
	return nil
}

// afterCommit updates caches and metrics.
func (s *Stage) afterCommit(b *batchState) {
	if s.deps.Committed != nil {
		if c := b.published(); c != nil {
			s.deps.Committed(c)
		}
	}
	s.personless.add(b.project, b.newPersonless)
	s.metrics.created.Add(float64(len(b.created)))
	s.metrics.merged.Add(float64(len(b.merges)))
	for i := range b.warnings {
		if b.warnings[i].Type == WarnAlreadyIdentified || b.warnings[i].Type == WarnIllegalDistinctID {
			s.metrics.rejected.Inc()
		}
	}
}

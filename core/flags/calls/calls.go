// Package calls is a stage of the ingestion pipeline: it records when clients
// last called each flag, and refreshes flags after new group types.
//
// Clients report a call with an event. The stage writes the newest call of each
// flag in a batch, at most once a minute and flag, in the transaction of the
// batch. A batch that has the first event of a group type advances the revision
// of the project, so that every process compiles its flags again. Processing a
// batch twice changes nothing.
//
// The stage runs after the stage that stores group types. Its memory of
// earlier batches changes after a commit only.
package calls

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/flags/revision"
	"github.com/guidonhq/guidon/sdk"
)

// The event that reports a call, and its property with the key of the flag.
const (
	Event       = "$feature_flag_called"
	KeyProperty = "$feature_flag"
)

// GroupTypes reads the group types of a project.
type GroupTypes interface {
	// GroupTypes returns the index of each group type by its name.
	GroupTypes(ctx context.Context, projectID int64) (map[string]int, error)
}

// Stage is the pipeline stage. It is safe for concurrent use.
type Stage struct {
	store     *Store
	revisions *revision.Writer
	groups    GroupTypes

	mu       sync.Mutex
	recorded map[call]time.Time // stored times, at most interval older than a newer call
	checked  map[groupType]bool // names that were looked up
	parsers  fastjson.ParserPool
}

// call identifies a flag as events do.
type call struct {
	project int64
	key     string
}

type groupType struct {
	project int64
	name    string
}

const (
	interval      = time.Minute // the precision of the time of the last call
	maxRemembered = 100_000     // entries of recorded and of checked
)

// NewStage returns the stage.
func NewStage(store *Store, revisions *revision.Writer, groups GroupTypes) *Stage {
	return &Stage{store: store, revisions: revisions, groups: groups, recorded: map[call]time.Time{}, checked: map[groupType]bool{}}
}

// Name is the name of the stage in the pipeline.
func (s *Stage) Name() string { return "flags" }

// Process records the calls of a batch and its new group types. It joins the
// transaction in ctx.
func (s *Stage) Process(ctx context.Context, batch []*sdk.Event) error {
	calls, groups := s.read(batch)
	if err := s.recordCalls(ctx, calls); err != nil {
		return err
	}
	return s.announceGroupTypes(ctx, groups)
}

// read returns the latest call of each flag and the group types in a batch.
func (s *Stage) read(batch []*sdk.Event) (map[call]time.Time, map[groupType]bool) {
	calls, groups := map[call]time.Time{}, map[groupType]bool{}
	p := s.parsers.Get()
	defer s.parsers.Put(p)
	for _, ev := range batch {
		called := ev.Name == Event
		if !called && !bytes.Contains(ev.Properties, []byte(`"$group`)) {
			continue
		}
		v, err := p.ParseBytes(ev.Properties)
		if err != nil {
			continue
		}
		if key := v.GetStringBytes(KeyProperty); called && len(key) > 0 {
			at := ev.Timestamp
			if ev.ReceivedAt.Before(at) {
				at = ev.ReceivedAt
			}
			if c := (call{ev.ProjectID, string(key)}); calls[c].Before(at) {
				calls[c] = at
			}
		}
		if name := v.GetStringBytes("$group_type"); len(name) > 0 {
			groups[groupType{ev.ProjectID, string(name)}] = true
		}
		v.GetObject("$groups").Visit(func(name []byte, _ *fastjson.Value) {
			groups[groupType{ev.ProjectID, string(name)}] = true
		})
	}
	return calls, groups
}

// recordCalls stores the calls that are newer than the recorded ones by at least
// the interval.
func (s *Stage) recordCalls(ctx context.Context, calls map[call]time.Time) error {
	s.mu.Lock()
	for c, at := range calls {
		if last, ok := s.recorded[c]; ok && at.Sub(last) < interval {
			delete(calls, c)
		}
	}
	s.mu.Unlock()
	for _, c := range sortCalls(calls) {
		if err := s.store.record(ctx, c, calls[c]); err != nil {
			return err
		}
	}
	s.revisions.AfterCommit(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.recorded)+len(calls) > maxRemembered {
			clear(s.recorded)
		}
		for c, at := range calls {
			s.recorded[c] = at
		}
	})
	return nil
}

// sortCalls returns the calls in one order for all processes, so that two
// workers never deadlock on the rows.
func sortCalls(calls map[call]time.Time) []call {
	list := make([]call, 0, len(calls))
	for c := range calls {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.key, b.key))
	})
	return list
}

// announceGroupTypes advances the revisions of projects with new group types.
func (s *Stage) announceGroupTypes(ctx context.Context, groups map[groupType]bool) error {
	unchecked := map[int64][]groupType{}
	s.mu.Lock()
	for g := range groups {
		if !s.checked[g] {
			unchecked[g.project] = append(unchecked[g.project], g)
		}
	}
	s.mu.Unlock()
	for project, names := range unchecked {
		types, err := s.groups.GroupTypes(ctx, project)
		if err != nil {
			return fmt.Errorf("read group types of project %d: %w", project, err)
		}
		isNew := slices.ContainsFunc(names, func(g groupType) bool { _, ok := types[g.name]; return ok })
		if isNew {
			if err := s.revisions.Touch(ctx, project); err != nil {
				return err
			}
		}
		s.revisions.AfterCommit(ctx, func() { s.rememberGroupTypes(project, names, isNew) })
	}
	return nil
}

// rememberGroupTypes remembers names that were looked up, and refreshes the
// memory of this process if group types are among them.
func (s *Stage) rememberGroupTypes(project int64, names []groupType, refresh bool) {
	s.mu.Lock()
	if len(s.checked)+len(names) > maxRemembered {
		clear(s.checked)
	}
	for _, g := range names {
		s.checked[g] = true
	}
	s.mu.Unlock()
	if refresh {
		s.revisions.Refresh(context.Background(), project)
	}
}

package flags

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fastjson"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/sdk"
)

// CallStage is a step of the ingestion worker: it notes when clients last
// reported that they asked for a flag, and makes group types known to flags
// that appear for the first time. It writes in the worker's transaction and
// goes after the step that makes group types.
type CallStage struct {
	store  *Store
	memory Refresher
	groups GroupTypes
	log    *zap.Logger

	mu      sync.Mutex
	noted   map[flagCall]time.Time // what is stored, not older than callEvery
	known   map[groupName]bool     // group types that have been looked at
	parsers fastjson.ParserPool
}

// flagCall names a flag the way events do.
type flagCall struct {
	project int64
	key     string
}

type groupName struct {
	project int64
	name    string
}

const (
	callEvery = time.Minute // how exact the time of the last call is
	maxNoted  = 100_000
)

// NewCallStage returns the stage. A nil log is silent.
func NewCallStage(store *Store, memory Refresher, groups GroupTypes, log *zap.Logger) *CallStage {
	if log == nil {
		log = zap.NewNop()
	}
	return &CallStage{
		store: store, memory: memory, groups: groups, log: log.Named("flags"),
		noted: map[flagCall]time.Time{}, known: map[groupName]bool{},
	}
}

// Name is how the worker calls the stage.
func (s *CallStage) Name() string { return "flags" }

// Process notes the calls in a batch and the group types it brings. Doing the
// same batch twice changes nothing.
func (s *CallStage) Process(ctx context.Context, batch []*sdk.Event) error {
	calls, groups := s.read(batch)
	if err := s.note(ctx, calls); err != nil {
		return err
	}
	return s.meet(ctx, groups)
}

// read finds the latest call of each flag and the group types in a batch.
func (s *CallStage) read(batch []*sdk.Event) (map[flagCall]time.Time, map[groupName]bool) {
	calls, groups := map[flagCall]time.Time{}, map[groupName]bool{}
	p := s.parsers.Get()
	defer s.parsers.Put(p)
	for _, ev := range batch {
		called := ev.Name == eventCalled
		if !called && !bytes.Contains(ev.Properties, []byte(`"$group`)) {
			continue
		}
		v, err := p.ParseBytes(ev.Properties)
		if err != nil {
			continue
		}
		if key := v.GetStringBytes(propertyFlag); called && len(key) > 0 {
			at := ev.Timestamp
			if ev.ReceivedAt.Before(at) {
				at = ev.ReceivedAt
			}
			if c := (flagCall{ev.ProjectID, string(key)}); calls[c].Before(at) {
				calls[c] = at
			}
		}
		if name := v.GetStringBytes("$group_type"); len(name) > 0 {
			groups[groupName{ev.ProjectID, string(name)}] = true
		}
		v.GetObject("$groups").Visit(func(name []byte, _ *fastjson.Value) {
			groups[groupName{ev.ProjectID, string(name)}] = true
		})
	}
	return calls, groups
}

// note stores the calls that are news.
func (s *CallStage) note(ctx context.Context, calls map[flagCall]time.Time) error {
	s.mu.Lock()
	for c, at := range calls {
		if last, ok := s.noted[c]; ok && at.Sub(last) < callEvery {
			delete(calls, c)
		}
	}
	s.mu.Unlock()
	for _, c := range sortedCalls(calls) {
		if err := s.store.called(ctx, c.project, c.key, calls[c]); err != nil {
			return err
		}
	}
	s.store.afterCommit(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.noted)+len(calls) > maxNoted {
			clear(s.noted)
		}
		for c, at := range calls {
			s.noted[c] = at
		}
	})
	return nil
}

// sortedCalls puts them in one order everywhere, so that two workers never
// wait for each other's rows.
func sortedCalls(calls map[flagCall]time.Time) []flagCall {
	list := make([]flagCall, 0, len(calls))
	for c := range calls {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b flagCall) int {
		return cmp.Or(cmp.Compare(a.project, b.project), cmp.Compare(a.key, b.key))
	})
	return list
}

// meet lets projects with new group types be read anew by every process.
func (s *CallStage) meet(ctx context.Context, groups map[groupName]bool) error {
	fresh := map[int64][]groupName{}
	s.mu.Lock()
	for g := range groups {
		if !s.known[g] {
			fresh[g.project] = append(fresh[g.project], g)
		}
	}
	s.mu.Unlock()
	for project, names := range fresh {
		types, err := s.groups.GroupTypes(ctx, project)
		if err != nil {
			return fmt.Errorf("read group types of project %d: %w", project, err)
		}
		some := slices.ContainsFunc(names, func(g groupName) bool { _, ok := types[g.name]; return ok })
		if some {
			if err := s.store.Touch(ctx, project); err != nil {
				return err
			}
		}
		s.store.afterCommit(ctx, func() { s.met(project, names, some) })
	}
	return nil
}

// met remembers names that have been looked at; some says that there are group
// types among them, which memory may not have yet.
func (s *CallStage) met(project int64, names []groupName, some bool) {
	s.mu.Lock()
	if len(s.known)+len(names) > maxNoted {
		clear(s.known)
	}
	for _, g := range names {
		s.known[g] = true
	}
	s.mu.Unlock()
	if !some {
		return
	}
	if err := s.memory.Refresh(context.Background(), project); err != nil {
		s.log.Warn("flags in memory are behind the store", zap.Int64("project_id", project), zap.Error(err))
	}
}

package cohorts_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/match"
)

// slowSource is a source whose reads of project 1, and of revisions, block while
// blocked is set.
type slowSource struct {
	blocked  atomic.Bool
	unblock  chan struct{}
	revision atomic.Int64
	filters  string
	loads    atomic.Int64
}

func newSlowSource() *slowSource {
	s := &slowSource{unblock: make(chan struct{}), filters: proCohort}
	s.revision.Store(1)
	return s
}

const proCohort = `{"properties":{"type":"AND","values":[{"key":"plan","type":"person","operator":"exact","value":"pro"}]}}`

func (s *slowSource) wait(ctx context.Context) error {
	if !s.blocked.Load() {
		return nil
	}
	select {
	case <-s.unblock:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slowSource) Definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error) {
	s.loads.Add(1)
	if projectID == 1 {
		if err := s.wait(ctx); err != nil {
			return eval.ProjectDefinitions{}, err
		}
	}
	return eval.ProjectDefinitions{
		Cohorts:  []eval.CohortDefinition{{ID: 7, Filters: json.RawMessage(s.filters)}, {ID: 8, Static: true}, {ID: 9, Deleted: true}},
		Revision: s.revision.Load(),
	}, nil
}

func (s *slowSource) Revisions(ctx context.Context) (map[int64]int64, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	n := s.revision.Load()
	return map[int64]int64{1: n, 2: n, 3: n}, nil
}

// people has one person on the plan pro, who is on the list of cohort 8.
type people struct{}

func (people) Properties(_ context.Context, _ int64, distinctID string) ([]byte, bool, error) {
	if distinctID == "failing" {
		return nil, false, errors.New("connection refused")
	}
	return []byte(`{"plan":"pro"}`), distinctID == "pro", nil
}

func (people) StaticCohorts(_ context.Context, _ int64, distinctID string) ([]int64, error) {
	if distinctID == "pro" {
		return []int64{8}, nil
	}
	return nil, nil
}

func newMembers(s *slowSource) *cohorts.Members {
	return cohorts.NewMembers(cohorts.MembersDependencies{Source: s, Lists: people{}, People: people{}})
}

func TestInCohort(t *testing.T) {
	t.Parallel()
	m := newMembers(newSlowSource())
	for _, c := range []struct {
		cohort int64
		id     string
		want   match.Result
		fails  bool
	}{
		{7, "pro", match.True, false},
		{8, "pro", match.True, false},
		{8, "other", match.False, false},
		{9, "pro", match.Unknown, false},
		{99, "pro", match.Unknown, false},
		{7, "failing", match.Unknown, true},
	} {
		got, err := m.InCohort(t.Context(), 2, c.cohort, c.id)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("cohort %d, %s: got %s, %v; want %s", c.cohort, c.id, got, err, c.want)
		}
	}
}

// A database that is slow for one project once delayed the answers of all: one
// mutex was held while cohorts were read.
func TestASlowProjectDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	s := newSlowSource()
	m := newMembers(s)
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Stop(context.Background()) }()
	if _, err := m.InCohort(t.Context(), 3, 7, "pro"); err != nil { // loads project 3
		t.Fatal(err)
	}
	s.blocked.Store(true)
	slow := make(chan match.Result, 1)
	go func() {
		res, _ := m.InCohort(context.Background(), 1, 7, "pro")
		slow <- res
	}()
	time.Sleep(700 * time.Millisecond) // past the time after which changes are looked for
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, project := range []int64{2, 3} {
		answer := make(chan match.Result, 1)
		go func() {
			res, _ := m.InCohort(ctx, project, 7, "pro")
			answer <- res
		}()
		select {
		case res := <-answer:
			if res != match.True {
				t.Errorf("project %d: got %s, want true", project, res)
			}
		case <-ctx.Done():
			t.Fatalf("project %d waits for project 1", project)
		}
	}
	close(s.unblock)
	if res := <-slow; res != match.True {
		t.Errorf("project 1: got %s, want true", res)
	}
}

func TestConcurrentAnswersShareOneLoad(t *testing.T) {
	t.Parallel()
	s := newSlowSource()
	m := newMembers(s)
	s.blocked.Store(true)
	answers := make(chan error, 8)
	for range cap(answers) {
		go func() {
			_, err := m.InCohort(context.Background(), 1, 7, "pro")
			answers <- err
		}()
	}
	time.Sleep(50 * time.Millisecond)
	s.blocked.Store(false)
	close(s.unblock)
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if n := s.loads.Load(); n > 2 {
		t.Errorf("%d loads for %d answers", n, cap(answers))
	}
}

func TestChangesOfCohortsAreFollowed(t *testing.T) {
	t.Parallel()
	s := newSlowSource()
	m := newMembers(s)
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Stop(context.Background()) }()
	if res, err := m.InCohort(t.Context(), 2, 7, "someone"); res != match.True || err != nil {
		t.Fatalf("got %s, %v", res, err)
	}
	s.revision.Add(1)
	for deadline := time.Now().Add(time.Minute); s.loads.Load() < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the changed cohorts were not read again")
		}
	}
}

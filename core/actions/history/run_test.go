package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

// gated is an event store that answers when the test releases it.
type gated struct {
	history.EventHistory
	asked atomic.Int64
	gate  chan struct{} // one answer a token; closed: all
}

func (g *gated) CountHistory(ctx context.Context, a *events.HistoryQuery, width time.Duration) (events.HistoryCounts, error) {
	g.asked.Add(1)
	select {
	case <-g.gate:
	case <-ctx.Done():
		return events.HistoryCounts{}, ctx.Err()
	}
	return g.EventHistory.CountHistory(ctx, a, width)
}

// until waits for something that is about to be true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestLongCountContinuesInBackground(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		slow := &gated{gate: make(chan struct{})}
		p := newPlace(t, d, func(p *place) {
			p.cfg.MaxWait, p.cfg.Readers = time.Millisecond, 1
			slow.EventHistory, p.past = p.past, slow
		})
		p.happened(today.AddDate(0, 0, -3), "signup", "a", `{}`)
		p.happened(today.AddDate(0, 0, -50), "signup", "a", `{}`)
		a := action(1, actionmatch.Step{Event: "signup"})
		from := today.AddDate(0, -3, 0)
		if f := p.count(a, from, today); f.Count != 0 || !f.Calculating || !f.CalculatedAt.IsZero() {
			t.Errorf("before anything is counted: %+v", f)
		}
		if !p.history.Calculating(1) {
			t.Error("nothing is calculating")
		}
		slow.gate <- struct{}{}
		until(t, "the newest days", func() bool { return p.count(a, from, today).Count == 1 })
		if f := p.count(a, from, today); !f.Calculating || !f.CalculatedAt.IsZero() {
			t.Errorf("when the newest days are counted: %+v", f)
		}
		if err := p.history.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.history.Count(t.Context(), a, time.UTC, from, today); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a count after the stop: %v", err)
		}
		asked := slow.asked.Load()
		close(slow.gate)
		p.cfg.MaxWait = time.Minute
		p.open()
		if f := p.count(a, from, today); f.Count != 2 || f.Calculating || f.CalculatedAt.IsZero() {
			t.Errorf("after a restart: %+v", f)
		}
		if n := slow.asked.Load() - asked; n > 6 {
			t.Errorf("a restart asked %d times, and has counted the newest days again", n)
		}
		at, err := p.history.CalculatedAt(t.Context(), []int64{1, 2})
		if err != nil || len(at) != 1 || at[1].IsZero() {
			t.Errorf("calculated at %v, %v", at, err)
		}
	})
}

func TestConcurrentRequestsShareOneRun(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		slow := &gated{gate: make(chan struct{})}
		p := newPlace(t, d, func(p *place) { slow.EventHistory, p.past = p.past, slow })
		for n := range 20 {
			p.happened(today.Add(-time.Duration(n)*24*time.Hour-time.Hour), "signup", "a", `{}`)
		}
		var all sync.WaitGroup
		var arrived atomic.Int64
		for range 20 {
			all.Go(func() {
				arrived.Add(1)
				f, err := p.history.Count(t.Context(), action(1, actionmatch.Step{Event: "signup"}), time.UTC, today.AddDate(0, -3, 0), today)
				if err != nil || f.Count != 20 || f.Calculating {
					t.Errorf("%+v %v", f, err)
				}
			})
		}
		until(t, "all requests arrived", func() bool { return arrived.Load() == 20 && slow.asked.Load() > 0 })
		close(slow.gate)
		all.Wait()
		if n := slow.asked.Load(); n > 2*4+20*2 {
			t.Errorf("20 who asked made %d questions", n)
		}
	})
}

func TestConcurrentCountsDuringWrites(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		p := newPlace(t, d, nil)
		other := newPlace(t, d, nil) // another node on the same database
		from := today.AddDate(0, 0, -10)
		var all sync.WaitGroup
		for n := range 4 {
			all.Go(func() {
				h, a := p.history, action(int64(n%2+1), actionmatch.Step{Event: "signup"})
				if n > 1 {
					h = other.history
				}
				for last := int64(0); last < 60; {
					f, err := h.Count(t.Context(), a, time.UTC, from, today)
					if err != nil || f.Count < last {
						t.Errorf("%+v after %d: %v", f, last, err)
						return
					}
					last = f.Count
				}
			})
		}
		for n := range 60 {
			p.happened(today.Add(-time.Duration(n)*time.Hour-time.Second), "signup", fmt.Sprint(n), `{}`)
		}
		all.Wait()
	})
}

func TestUndecidedEventsAreReported(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		p := newPlace(t, d, func(p *place) { p.sources.Operators = plugins{} })
		p.happened(today.Add(-time.Hour), "signup", "a", `{"ip":"10.0.0.1"}`)
		p.happened(today.Add(-time.Hour), "signup", "a", `{}`)
		from := today.AddDate(0, 0, -7)
		cidr := actionmatch.Step{Event: "signup", Properties: []json.RawMessage{json.RawMessage(`{"key":"ip","operator":"net/cidr","value":"10.0.0.0/8"}`)}}
		if f := p.count(action(1, cidr), from, today); f.Count != 0 || f.Undecided != 1 || f.Problem != "" {
			t.Errorf("without the plugin's answers: %+v", f)
		}
		unknown := actionmatch.Step{Event: "signup", Properties: []json.RawMessage{json.RawMessage(`{"key":"ip","operator":"gone/away","value":1}`)}}
		if f := p.count(action(2, unknown, actionmatch.Step{Event: "signup"}), from, today); f.Count != 2 || f.Problem == "" {
			t.Errorf("with a step that means nothing: %+v", f)
		}
		p.sources.Plugins = func() actionmatch.Plugins { return &sage{} }
		p.open()
		for n := range 30 {
			p.happened(today.Add(-2*time.Hour), "signup", fmt.Sprint(n), fmt.Sprintf(`{"ip":"10.0.0.%d"}`, n))
		}
		if f := p.count(action(3, cidr), from, today); f.Count != 31 || f.Undecided != 0 {
			t.Errorf("with the plugin's answers: %+v", f)
		}
	})
}

type plugins struct{}

func (plugins) Operator(id string) (match.ExternalOperator, bool) {
	return match.ExternalOperator{
		Missing: match.False,
		Compile: func(value []byte) (match.Compiled, error) { return match.Compiled{Program: match.Program(value)}, nil },
	}, id == "net/cidr"
}

// sage matches every value of an earlier round.
type sage struct {
	noted []string
	asked int
}

func (s *sage) Match(_ match.Program, v *match.Value) match.Result {
	switch i := slices.Index(s.noted, v.Identifier()); {
	case i < 0:
		s.noted = append(s.noted, strings.Clone(v.Identifier()))
	case i < s.asked:
		return match.True
	}
	return match.Unknown
}

func (s *sage) Ask(context.Context) bool {
	s.asked = len(s.noted)
	return true
}

package decide_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/flagstest"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/match"
)

// changingSource is a Source whose content may change while it is read.
type changingSource struct {
	mu    sync.Mutex
	flags map[int64]string // filters of the flag f by project
	stamp int64
	loads int
	err   error
}

func (p *changingSource) put(project int64, filters string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stamp++
	p.flags[project] = filters
}

func (p *changingSource) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *changingSource) Definitions(_ context.Context, project int64) (eval.ProjectDefinitions, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loads++
	return eval.ProjectDefinitions{Flags: []eval.Definition{flagstest.Define(1, "f", p.flags[project])}, Revision: p.stamp}, p.err
}

func (p *changingSource) Revisions(context.Context) (map[int64]int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[int64]int64{}
	for id := range p.flags {
		out[id] = p.stamp
	}
	return out, p.err
}

func snapshots(t *testing.T, source decide.Source, every time.Duration) *decide.Snapshots {
	t.Helper()
	cfg := decide.DefaultConfig()
	cfg.PollInterval = every
	s, err := decide.NewSnapshots(cfg, source, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func isOn(s *decide.Snapshots, project int64) bool {
	for _, d := range s.Set(project).Evaluate(&eval.Request{DistinctID: "u"}, nil, flagstest.Now) {
		return d.On
	}
	return false
}

func TestRefreshShowsLocalWrite(t *testing.T) {
	t.Parallel()
	p := &changingSource{flags: map[int64]string{}}
	s := snapshots(t, p, time.Hour)
	if isOn(s, 1) {
		t.Error("an unknown project must have no flags")
	}
	for i := range 4 {
		p.put(1, []string{`{}`, `{"groups":[]}`}[i%2])
		if err := s.Refresh(context.Background(), 1); err != nil {
			t.Fatal(err)
		}
		if isOn(s, 1) != (i%2 == 0) {
			t.Errorf("write %d is not seen", i)
		}
	}
}

func TestPollShowsWriteOfAnotherProcess(t *testing.T) {
	t.Parallel()
	p := &changingSource{flags: map[int64]string{1: `{"groups":[]}`}}
	s := snapshots(t, p, 5*time.Millisecond)
	ctx := context.Background()
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	}()
	p.put(1, `{}`)
	p.put(2, `{}`)
	for deadline := time.Now().Add(time.Minute); !isOn(s, 1) || !isOn(s, 2); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the change was not seen")
		}
	}
}

func TestOnlyChangedProjectsAreLoadedAgain(t *testing.T) {
	t.Parallel()
	p := &changingSource{flags: map[int64]string{1: `{}`}}
	p.stamp = 1
	s := snapshots(t, p, time.Hour)
	for range 3 {
		if err := s.Poll(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Refresh(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Poll(context.Background()); err != nil {
		t.Fatal(err)
	}
	if p.loads != 2 {
		t.Errorf("loaded %d times, want once for the start and once for the write", p.loads)
	}
}

func TestSnapshotsKeepLastSetOnFailure(t *testing.T) {
	t.Parallel()
	p := &changingSource{flags: map[int64]string{1: `{}`}}
	s := snapshots(t, p, time.Hour)
	if err := s.Poll(context.Background()); err != nil {
		t.Fatal(err)
	}
	p.fail(errors.New("gone"))
	if s.Poll(context.Background()) == nil || s.Refresh(context.Background(), 1) == nil {
		t.Error("Poll and Refresh must return the failure")
	}
	if !isOn(s, 1) {
		t.Error("the last set was lost")
	}
	if snapshots(t, p, time.Hour).Start(context.Background()) == nil {
		t.Error("Start must fail without a source")
	}
}

func TestDecidingWhileFlagsChange(t *testing.T) {
	t.Parallel()
	p := &changingSource{flags: map[int64]string{1: `{}`}}
	s := snapshots(t, p, time.Millisecond)
	ctx := context.Background()
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
	d, err := decide.NewDecider(decide.DefaultConfig(), s, around(&memoryStore{people: map[string]string{"u": `{"a":1}`}}), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				if got := d.Decide(ctx, 1, &eval.Request{DistinctID: "u"}); len(got) != 1 || got[0].Failed != eval.CauseNone {
					t.Errorf("got %v", got)
					return
				}
			}
		})
	}
	for i := range 200 {
		p.put(1, fmt.Sprintf(`{"groups":[{"properties":[{"key":"p%d","operator":"is_not_set"},{"key":"a","value":1}],"rollout_percentage":%d}]}`, i, i%100))
		if err := s.Refresh(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// cidrPlugin is a Registry with one operator, answered by a Matchers that counts.
type cidrPlugin struct {
	calls, pairs int
	silent       bool
}

func (n *cidrPlugin) Operator(id string) (match.ExternalOperator, bool) {
	return match.ExternalOperator{
		Missing: match.False,
		Compile: func(value []byte) (match.Compiled, error) {
			if string(value) == `"bad"` {
				return match.Compiled{}, errors.New("not a network")
			}
			return match.Compiled{Program: match.Program(value)}, nil
		},
	}, id == "cidr/contains"
}

func (n *cidrPlugin) Known(match.Program, *match.Value, time.Time) (match.Result, bool) {
	return match.Unknown, false
}

func (n *cidrPlugin) MatchPairs(_ context.Context, _ time.Time, pairs []match.Pair, results []match.Result) {
	n.calls++
	n.pairs += len(pairs)
	for i, p := range pairs {
		if !n.silent {
			v := string(p.Value.AppendTo(nil))
			results[i] = match.Of(strings.HasPrefix(v, strings.TrimSuffix(string(p.Program), `"`)))
		}
	}
}

func TestPluginsAreCalledOnceForAllFlags(t *testing.T) {
	t.Parallel()
	within := func(cidrPlugin string) string {
		return `{"groups":[{"properties":[{"key":"ip","operator":"cidr/contains","value":"` + cidrPlugin + `"},{"key":"plan","value":"pro"}]}]}`
	}
	s := &memorySource{stored: eval.ProjectDefinitions{Flags: []eval.Definition{
		flagstest.Define(1, "ten", within("10.")), flagstest.Define(2, "ten-again", within("10.")), flagstest.Define(3, "other", within("192.")), flagstest.Define(4, "bad", within("bad")),
		flagstest.Define(5, "depends", flagstest.DependsOn("1", "true")), flagstest.Define(6, "plain", `{}`),
		flagstest.Define(7, "decided-without", `{"groups":[{"properties":[{"key":"ip","operator":"cidr/contains","value":"77."},{"key":"plan","value":"free"}]}]}`),
	}}}
	ask := func(n *cidrPlugin, lookups decide.Lookups, properties string) map[string]any {
		cfg := decide.DefaultConfig()
		snapshots, err := decide.NewSnapshots(cfg, s, n, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := snapshots.Poll(context.Background()); err != nil {
			t.Fatal(err)
		}
		reg := prometheus.NewRegistry()
		d, err := decide.NewDecider(cfg, snapshots, lookups, nil, reg)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]any{}
		q := person(properties)
		q.DistinctID = "u"
		for _, d := range d.Decide(context.Background(), 1, &q) {
			if out[d.Key] = d.Value(); d.Failed != eval.CauseNone {
				out[d.Key] = d.Failed.Code()
			}
		}
		if n, err := reg.Gather(); err != nil || len(n) == 0 {
			t.Errorf("metrics: %v %v", n, err)
		}
		return out
	}
	const out = "operator_unavailable"
	n := &cidrPlugin{}
	want(t, ask(n, decide.Lookups{Matchers: n}, `{"ip":"10.1.2.3","plan":"pro"}`), map[string]any{
		"ten": true, "ten-again": true, "other": false, "bad": out, "depends": true, "plain": true, "decided-without": false,
	})
	if n.calls != 1 || n.pairs != 2 {
		t.Errorf("%d calls with %d pairs, want one with the two different pairs that matter", n.calls, n.pairs)
	}
	n = &cidrPlugin{silent: true}
	want(t, ask(n, decide.Lookups{Matchers: n}, `{"ip":"10.1.2.3","plan":"pro"}`), map[string]any{
		"ten": out, "ten-again": out, "other": out, "bad": out, "depends": "missing_dependency", "plain": true, "decided-without": false,
	})
	if n.calls != 1 {
		t.Errorf("a silent plugin was asked %d times", n.calls)
	}
	n = &cidrPlugin{}
	want(t, ask(n, decide.Lookups{}, `{"plan":"pro"}`), map[string]any{
		"ten": false, "ten-again": false, "other": false, "bad": out, "depends": false, "plain": true, "decided-without": false,
	})
}

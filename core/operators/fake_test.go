package operators_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/sdk"
)

// fake is a matcher whose operators match equal values.
type fake struct {
	name string

	mu       sync.Mutex
	offers   []sdk.Operator
	version  uint64
	away     bool
	data     string
	ttl      time.Duration
	refuses  string            // the value that it rejects
	reads    []string          // of every program
	verdicts map[string]string // of property values, unless true or false
	hold     func(ctx context.Context) error
	compiled int
	batches  []wire.MatchBatch
}

var errAway = &sdk.Error{Class: sdk.ClassTransient, Code: "plugin_unavailable", Message: "the plugin is not running"}

// opened returns a running fake with an operator of each purity: t/pure, t/volatile,
// t/time, t/data.
func opened(name string) *fake {
	op := func(id string, p sdk.Purity) sdk.Operator {
		return sdk.Operator{ID: name + "/" + id, Purity: p, Missing: sdk.MissingNoMatch, ValueSchema: []byte(`{"type":"string"}`)}
	}
	return &fake{name: name, version: 1, data: "1", offers: []sdk.Operator{
		op("pure", sdk.Pure), op("volatile", sdk.Volatile), op("time", sdk.TimeDependent), op("data", sdk.DataDependent),
	}}
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.batches)
}

func (f *fake) Name() string { return f.name }
func (f *fake) Use() string  { return f.name }

func (f *fake) Operators() ([]sdk.Operator, uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.offers, f.version
}

func (f *fake) Available() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.away
}

func (f *fake) Ready(ctx context.Context) error {
	for !f.Available() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

func (f *fake) DataVersion() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.data
}

func (f *fake) Compile(_ context.Context, programs []wire.MatchProgram) ([]wire.Compiled, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		return nil, errAway
	}
	f.compiled++
	if string(programs[0].Value) == f.refuses {
		return []wire.Compiled{{Problems: []wire.Diagnostic{{Pointer: "/3", Summary: "is odd"}}}}, nil
	}
	return []wire.Compiled{{OK: true, Reads: f.reads}}, nil
}

func (f *fake) MatchBatch(ctx context.Context, b *wire.MatchBatch) (*wire.MatchAnswer, error) {
	f.mu.Lock()
	if f.away {
		f.mu.Unlock()
		return nil, errAway
	}
	f.batches = append(f.batches, *b)
	hold := f.hold
	f.mu.Unlock()
	if hold != nil {
		if err := hold(ctx); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &wire.MatchAnswer{DataVersion: f.data, TTL: f.ttl}
	for _, p := range b.Pairs {
		value := string(b.Values[p.Value])
		verdict := sdk.Matches(value == string(b.Programs[p.Program].Value))
		switch f.verdicts[value] {
		case "failed":
			verdict = sdk.Failed
		case "unknown":
			verdict = sdk.Unknown
		}
		out.Verdicts = append(out.Verdicts, verdict)
	}
	return out, nil
}

// forever blocks a call until its deadline.
func forever(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// service is Operators with fake matchers.
type service struct {
	*operators.Operators
	reg *prometheus.Registry

	mu    sync.Mutex
	fakes []*fake
}

func newService(t testing.TB, change func(*operators.Config), fakes ...*fake) *service {
	t.Helper()
	cfg := operators.DefaultConfig()
	cfg.CompileTimeout = 30 * time.Second
	if change != nil {
		change(&cfg)
	}
	h := &service{fakes: fakes, reg: prometheus.NewRegistry()}
	known := func(plugin string) []sdk.Operator {
		if plugin == "later" {
			return []sdk.Operator{{ID: "later/pure", Purity: sdk.Pure, ValueSchema: []byte(`{"type":"string"}`)}}
		}
		return nil
	}
	var err error
	h.Operators, err = operators.New(cfg, func() []operators.Matcher {
		h.mu.Lock()
		defer h.mu.Unlock()
		var out []operators.Matcher
		for _, f := range h.fakes {
			out = append(out, f)
		}
		return out
	}, known, nil, h.reg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *service) start(t *testing.T) {
	t.Helper()
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// pair returns a pair of a compiled value and a property.
func (h *service) pair(t testing.TB, operator, value, property string) match.Pair {
	t.Helper()
	o, ok := h.Operator(operator)
	if !ok {
		t.Fatalf("unknown operator %s", operator)
	}
	made, err := o.Compile([]byte(value))
	if err != nil || made.Open {
		t.Fatalf("%s %s: %+v %v", operator, value, made, err)
	}
	v, err := match.Parse([]byte(property))
	if err != nil {
		t.Fatal(err)
	}
	return match.Pair{Program: made.Program, Value: v}
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// ask evaluates pairs at a time, from the cache and then by the plugins.
func (h *service) ask(t testing.TB, now time.Time, pairs ...match.Pair) []match.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	results := make([]match.Result, len(pairs))
	var open []match.Pair
	var at []int
	for i := range pairs {
		var known bool
		if results[i], known = h.Known(pairs[i].Program, &pairs[i].Value, now); !known {
			open, at = append(open, pairs[i]), append(at, i)
		}
	}
	if len(open) == 0 {
		return results
	}
	answers := make([]match.Result, len(open))
	h.MatchPairs(ctx, now, open, answers)
	for i, r := range answers {
		results[at[i]] = r
	}
	return results
}

// count returns the sum of a metric over all labels, or over those with one value.
func (h *service) count(t testing.TB, name, label string) float64 {
	t.Helper()
	families, err := h.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			matches := label == ""
			for _, l := range m.GetLabel() {
				matches = matches || l.GetValue() == label
			}
			if matches {
				n += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return n
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not reached: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func resultText(results []match.Result) string {
	all := make([]string, len(results))
	for i, r := range results {
		all[i] = r.String()
	}
	return strings.Join(all, " ")
}

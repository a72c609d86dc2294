package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/sdk"
)

// probeMatcher offers one operator that does what it should and one that does
// the answer in its value.
type probeMatcher struct {
	cfg struct {
		Version string `json:"version"`
	}
}

func (p *probeMatcher) Config() any { return &p.cfg }

func (p *probeMatcher) Open(context.Context, sdk.OpenRequest) (sdk.MatcherProperties, error) {
	return sdk.MatcherProperties{MaxInFlight: 4}, nil
}

func (p *probeMatcher) DataVersion() string { return "data-1" }

func (p *probeMatcher) Operators() []sdk.Operator {
	return []sdk.Operator{
		{
			ID: "probe/prefix", Version: p.cfg.Version, Label: "starts with", Purity: sdk.Pure, Missing: sdk.MissingNoMatch,
			ValueSchema: []byte(`{"type": "string", "minLength": 1}`), PropertyTypes: []string{"string"}, Cost: time.Microsecond,
			Examples: []sdk.OperatorExample{{Value: []byte(`"a"`), Property: []byte(`"ab"`), Result: sdk.Match}},
		},
		{ID: "probe/odd"},
		{ID: "probe/plan"},
	}
}

func (p *probeMatcher) Compile(operator string, value json.RawMessage) (sdk.Program, error) {
	var word string
	if err := json.Unmarshal(value, &word); err != nil {
		return nil, sdk.ValueError("", err)
	}
	switch {
	case operator == "probe/prefix":
		return sdk.ProgramFunc(func(in *sdk.Input) sdk.Verdict {
			text, ok := in.String()
			return sdk.Matches(ok && strings.HasPrefix(text, word))
		}), nil
	case operator == "probe/plan":
		return planProgram(word), nil
	case word == "refused":
		return nil, sdk.ValueError("/place", errors.New("that is no value"))
	case word == "panics early":
		panic("no luck")
	}
	return sdk.ProgramFunc(func(in *sdk.Input) sdk.Verdict {
		switch {
		case word == "panic" && string(in.Value) == `"now"`:
			panic("no luck")
		case word == "hang":
			select {}
		case word == "slow":
			time.Sleep(time.Millisecond)
		case word == "fail":
			return in.Fail(sdk.Permanent(errors.New("not a number")))
		case word == "unknown":
			return sdk.Unknown
		case word == "odd":
			return 99
		case word == "noon":
			return sdk.Matches(in.Now.Hour() == 12)
		}
		return sdk.Match
	}), nil
}

func (p *probeMatcher) Close(context.Context) error { return nil }

// planProgram looks at two properties.
type planProgram string

func (p planProgram) Reads() []string { return []string{"plan", "seats"} }

func (p planProgram) Match(in *sdk.Input) sdk.Verdict {
	plan, _ := in.Property("plan")
	_, counted := in.Property("seats")
	return sdk.Matches(string(plan) == `"`+string(p)+`"` && counted)
}

func matcherConfig(name, use string, pluginConfig map[string]any) settings.Instance {
	c := instance(name, use, pluginConfig)
	c.Kind = settings.KindMatcher
	return c
}

// matcher returns the only matcher once it is ready.
func (r *run) matcher(t testing.TB) *host.MatcherInstance {
	t.Helper()
	m := r.Matchers()[0]
	usable(t, r, m)
	return m
}

// program names a value that is written without its quotes.
func program(t testing.TB, m *host.MatcherInstance, operator, word string) wire.MatchProgram {
	t.Helper()
	value, err := json.Marshal(word)
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Program(operator, value)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// against is a batch of one program with several values.
func against(p wire.MatchProgram, values ...string) *wire.MatchBatch {
	b := &wire.MatchBatch{Programs: []wire.MatchProgram{p}, Now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)}
	for i, v := range values {
		b.Values = append(b.Values, json.RawMessage(v))
		b.Pairs = append(b.Pairs, wire.MatchPair{Value: uint32(i)})
	}
	return b
}

func verdicts(a *wire.MatchAnswer) string {
	var words []string
	for _, v := range a.Verdicts {
		words = append(words, v.String())
	}
	return strings.Join(words, " ")
}

func TestOperatorsAreLoadedOncePerOpening(t *testing.T) {
	t.Parallel()
	r := start(t, config(matcherConfig("m", "probe", map[string]any{"version": "1"})))
	m := r.matcher(t)
	operators, version := m.Operators()
	if len(operators) != 3 || version != 1 || m.DataVersion() != "data-1" || m.Properties().MaxInFlight != 4 {
		t.Fatalf("%+v %d", operators, version)
	}
	o := operators[0]
	if o.ID != "probe/prefix" || o.Purity != sdk.Pure || o.Missing != sdk.MissingNoMatch || o.Cost != time.Microsecond ||
		len(o.Examples) != 1 || o.Examples[0].Result != sdk.Match || operators[1].Purity != sdk.Volatile || operators[1].Missing != sdk.MissingFails {
		t.Errorf("%+v", operators)
	}
	first := program(t, m, "probe/prefix", "a")
	if _, err := m.Program("probe/nothing", []byte(`1`)); !errors.Is(err, host.ErrUnknownOperator) {
		t.Errorf("%v", err)
	}
	if _, err := m.Program("probe/prefix", []byte(`{`)); err == nil {
		t.Error("a value that is not JSON has a program")
	}
	spaced, err := wire.NewMatchProgram(o, []byte(` "a" `))
	if err != nil || spaced.ID != first.ID {
		t.Errorf("white space makes another program: %v", err)
	}

	// Another version of an operator makes other programs.
	if err := r.Apply(t.Context(), config(matcherConfig("m", "probe", map[string]any{"version": "2"}))); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if _, version := m.Operators(); version != 2 {
			return fmt.Sprintf("version %d", version)
		}
		return ""
	})
	if second := program(t, m, "probe/prefix", "a"); second.ID == first.ID {
		t.Error("the same program for another version")
	}
}

func TestCompile(t *testing.T) {
	t.Parallel()
	r := start(t, config(matcherConfig("m", "probe", nil)))
	m := r.matcher(t)
	results, err := m.Compile(t.Context(), []wire.MatchProgram{
		program(t, m, "probe/prefix", "a"), program(t, m, "probe/prefix", ""), program(t, m, "probe/odd", "refused"),
		program(t, m, "probe/plan", "pro"), program(t, m, "probe/odd", "panics early"),
	})
	if err != nil || len(results) != 5 {
		t.Fatalf("%+v %v", results, err)
	}
	if !results[0].OK || results[0].Cost != time.Microsecond || len(results[0].Reads) > 0 {
		t.Errorf("%+v", results[0])
	}
	if results[1].OK || results[1].Problems[0].Pointer != "" || !strings.Contains(results[1].Problems[0].Summary, "minLength") {
		t.Errorf("%+v", results[1])
	}
	if results[2].OK || results[2].Problems[0].Pointer != "/place" || results[2].Problems[0].Summary != "that is no value" {
		t.Errorf("%+v", results[2])
	}
	if !results[3].OK || !slices.Equal(results[3].Reads, []string{"plan", "seats"}) {
		t.Errorf("%+v", results[3])
	}
	if results[4].OK || !strings.Contains(results[4].Problems[0].Summary, "no luck") {
		t.Errorf("%+v", results[4])
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	r := start(t, config(matcherConfig("m", "probe", nil)))
	m := r.matcher(t)
	for _, tt := range []struct {
		operator, word string
		values         []string
		want           string
	}{
		{"probe/prefix", "a", []string{`"abc"`, `"b"`, `7`, `null`}, "match no_match no_match no_match"},
		{"probe/prefix", "", []string{`"abc"`}, "failed"},
		{"probe/odd", "panic", []string{`"before"`, `"now"`, `"after"`}, "match failed match"},
		{"probe/odd", "panics early", []string{`1`}, "failed"},
		{"probe/odd", "fail", []string{`1`, `2`}, "failed failed"},
		{"probe/odd", "unknown", []string{`1`}, "unknown"},
		{"probe/odd", "odd", []string{`1`}, "unknown"},
		{"probe/odd", "noon", []string{`1`}, "match"},
		{"probe/plan", "pro", []string{`{"plan":"pro","seats":3}`, `{"plan":"pro"}`, `{}`}, "match no_match no_match"},
	} {
		p := program(t, m, tt.operator, tt.word)
		for _, time := range []string{"first", "second"} { // with the value, and without
			got, err := m.MatchBatch(t.Context(), against(p, tt.values...))
			if err != nil || verdicts(got) != tt.want {
				t.Errorf("%s %s, %s time: %+v %v", tt.operator, tt.word, time, got, err)
				continue
			}
			if at := strings.Index(" "+tt.want, " failed"); at >= 0 && len(got.Errors) == 0 {
				t.Errorf("%s %s: failed without a reason", tt.operator, tt.word)
			}
			if got.DataVersion != "data-1" {
				t.Errorf("data version %q", got.DataVersion)
			}
		}
	}
}

func TestPairsAfterTheDeadlineAreUnknown(t *testing.T) {
	t.Parallel()
	c := matcherConfig("m", "probe", nil)
	c.Timeouts.Call = time.Minute
	r := start(t, config(c))
	m := r.matcher(t)
	values := make([]string, 10_000) // of a millisecond each
	for i := range values {
		values[i] = `1`
	}
	slow := program(t, m, "probe/odd", "slow")
	eventually(t, func() string { // a slow machine may not get to the first pair
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		got, err := m.MatchBatch(ctx, against(slow, values...))
		if err != nil {
			return err.Error()
		}
		if got.Verdicts[0] != sdk.Match || got.Verdicts[9999] != sdk.Unknown {
			return fmt.Sprintf("first %s, last %s", got.Verdicts[0], got.Verdicts[9999])
		}
		return ""
	})
	if got, err := m.MatchBatch(t.Context(), against(program(t, m, "probe/prefix", "a"), `"a"`)); err != nil || verdicts(got) != "match" {
		t.Errorf("afterwards: %+v %v", got, err)
	}
}

func TestHangingMatcherCostsOneDeadline(t *testing.T) {
	t.Parallel()
	r := start(t, config(hanging(matcherConfig("m", "probe", nil), patience)))
	m := r.matcher(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := m.MatchBatch(ctx, against(program(t, m, "probe/odd", "hang"), `1`))
	if e := sdk.AsError(err); e == nil || e.Code != "deadline_exceeded" {
		t.Errorf("%v", err)
	}
	// Others still get their answers.
	if got, err := m.MatchBatch(t.Context(), against(program(t, m, "probe/prefix", "a"), `"a"`)); err != nil || verdicts(got) != "match" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestRestartedMatcherReceivesProgramsAgain(t *testing.T) {
	t.Parallel()
	r := start(t, config(matcherConfig("m", "probe", nil)))
	m := r.matcher(t)
	b := against(program(t, m, "probe/prefix", "a"), `"ab"`, `"b"`)
	if got, err := m.MatchBatch(t.Context(), b); err != nil || verdicts(got) != "match no_match" {
		t.Fatalf("%+v %v", got, err)
	}
	pid := r.Status()[0].PID
	kill(t, pid, syscall.SIGKILL)
	eventually(t, func() string {
		usable(t, r, m)
		got, err := m.MatchBatch(t.Context(), b)
		if now := r.Status()[0].PID; err != nil || verdicts(got) != "match no_match" || now == pid || now == 0 {
			return fmt.Sprintf("%+v %v", got, err)
		}
		return ""
	})
}

// Each evaluation of a flag may cause a violation; the log has a few of them.
func TestLogOfViolationsIsLimited(t *testing.T) {
	t.Parallel()
	r := start(t, config(matcherConfig("m", "raw", map[string]any{"answer": "empty"})))
	m := r.matcher(t)
	began := time.Now()
	for range 500 {
		_, _ = m.MatchBatch(t.Context(), against(program(t, m, "raw/good", "x"), `1`))
	}
	limit := 11 + int(time.Since(began)/time.Second)
	if n := r.logs.FilterMessage("plugin violated the contract").Len(); n < 10 || n > limit {
		t.Errorf("%d lines of 500 violations, want 10 to %d", n, limit)
	}
	if st := r.Status()[0]; !strings.Contains(st.LastError, "verdict_count") {
		t.Errorf("status %+v", st)
	}
}

func TestMatcherViolationsAreRejected(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ answer, want, says string }{
		{"empty", "contract_breach", "verdict_count"},
		{"more", "contract_breach", "verdict_count"},
		{"verdict", "match unknown match", "verdict: verdict 99"},
		{"needs", "contract_breach", "program_index"},
		{"repeats", "unknown unknown unknown", "program_needed_twice"},
		{"forgets", "match match match", ""},
		{"operators", "contract_breach", "verdict_count"},
	} {
		t.Run(tt.answer, func(t *testing.T) {
			t.Parallel()
			r := start(t, config(matcherConfig("m", "raw", map[string]any{"answer": tt.answer})))
			m := r.matcher(t)
			if operators, _ := m.Operators(); len(operators) != 1 || operators[0].Purity != sdk.Volatile || operators[0].CacheTTL != 0 {
				t.Fatalf("operators %+v", operators)
			}
			for range 2 {
				got, err := m.MatchBatch(t.Context(), against(program(t, m, "raw/good", "x"), `1`, `2`, `3`))
				var said string
				if err != nil {
					said = sdk.AsError(err).Code
				} else {
					said = verdicts(got)
				}
				if said != tt.want || got != nil && got.TTL < 0 {
					t.Errorf("%s %v", said, err)
				}
			}
			if st := r.Status()[0]; st.State != lifecycle.StateReady || !strings.Contains(st.LastError, tt.says) {
				t.Errorf("status %+v", st)
			}
			if _, err := m.Compile(t.Context(), []wire.MatchProgram{program(t, m, "raw/good", "x")}); sdk.AsError(err).Code != "contract_breach" {
				t.Errorf("compile: %v", err)
			}
		})
	}
}

func TestMatcherWithoutOperatorsIsNotUsed(t *testing.T) {
	t.Parallel()
	r := start(t, config(matcherConfig("m", "raw", map[string]any{"answer": "describe"})))
	eventually(t, func() string {
		if st := r.Status()[0]; st.State != lifecycle.StateConfigured || !strings.Contains(st.LastError, "contract_breach") {
			return fmt.Sprintf("%s %s", st.State, st.LastError)
		}
		return ""
	})
	m := r.Matchers()[0]
	if operators, version := m.Operators(); len(operators) != 0 || version != 0 || m.Available() {
		t.Errorf("%+v", operators)
	}
	if _, err := m.MatchBatch(t.Context(), &wire.MatchBatch{}); sdk.AsError(err).Code != "plugin_unavailable" {
		t.Errorf("%v", err)
	}
}

// BenchmarkMatchBatch asks for verdicts on pairs of 100 programs and values in one
// call, through a real process with mutual TLS, and reports the median.
func BenchmarkMatchBatch(b *testing.B) {
	for _, pairs := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("pairs=%d", pairs), func(b *testing.B) {
			r := start(b, config(matcherConfig("m", "probe", nil)))
			m := r.matcher(b)
			batch := &wire.MatchBatch{Now: time.Now()}
			for i := range min(pairs, 100) {
				batch.Programs = append(batch.Programs, program(b, m, "probe/prefix", fmt.Sprint("a", i)))
				batch.Values = append(batch.Values, fmt.Appendf(nil, `"a%d suffix"`, i))
			}
			for i := range pairs {
				batch.Pairs = append(batch.Pairs, wire.MatchPair{Program: uint32(i % 100), Value: uint32((i + i/100) % 100)})
			}
			if pairs < 100 {
				batch.Pairs = []wire.MatchPair{{}}
			}
			took := make([]time.Duration, 0, 1<<16)
			for b.Loop() {
				from := time.Now()
				if _, err := m.MatchBatch(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(from))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

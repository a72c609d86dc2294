package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

// probeNotifier misbehaves as the first word of a notification's id tells it.
type probeNotifier struct {
	cfg struct {
		Trace  string `json:"trace"`
		Secret string `json:"secret" secret:"true"`
	}
}

func (p *probeNotifier) Config() any { return &p.cfg }

func (p *probeNotifier) trace(format string, args ...any) {
	q := &probe{}
	q.cfg.Trace = p.cfg.Trace
	q.trace(format, args...)
}

func (p *probeNotifier) Open(context.Context, sdk.OpenRequest) (sdk.NotifierProperties, error) {
	p.trace("open")
	return sdk.NotifierProperties{MaxItems: 3, MaxInFlight: 2, PerSecond: 1, Burst: 5, Formats: []string{sdk.FormatSegments, "odd"}}, nil
}

func (p *probeNotifier) Notify(_ context.Context, n *sdk.Notification) (sdk.NotifyResult, error) {
	p.trace("notify %s %s %d", n.ID, n.Text, n.Attempt)
	word, _, _ := strings.Cut(n.ID, "-")
	switch word {
	case "empty":
		return sdk.NotifyResult{}, nil
	case "transient":
		return sdk.NotifyResult{}, errors.New("not now")
	case "throttled":
		return sdk.NotifyResult{Rate: &sdk.Rate{ResetAfter: 1e6 * time.Hour, Scope: "#general"}},
			sdk.Throttled(errors.New("slow down"), 10*365*24*time.Hour)
	case "permanent":
		return sdk.NotifyResult{}, sdk.Permanent(errors.New("no such channel"))
	case "lost":
		return sdk.NotifyResult{}, sdk.NotConnected(errors.New("session lost"))
	case "wrong":
		return sdk.NotifyResult{}, sdk.ConfigError("/secret", errors.New("the token "+p.cfg.Secret+" is revoked"))
	case "panic":
		panic("no luck")
	case "die":
		panicElsewhere()
	case "hang":
		select {}
	}
	r := n.Delivered("m-" + n.ID)
	r.Rate = &sdk.Rate{Remaining: 3, ResetAfter: time.Minute}
	return r, nil
}

func (p *probeNotifier) Preview(_ context.Context, n *sdk.Notification) (sdk.Preview, error) {
	if n.Text == "" {
		return sdk.Preview{}, sdk.Permanent(errors.New("nothing to show"))
	}
	text := n.Render(func(s sdk.Segment) string { return s.Kind.String() + "(" + s.Value + ")" })
	return sdk.Preview{Rendered: []byte(text), MediaType: "text/plain", Warnings: []string{"token " + p.cfg.Secret}}, nil
}

func (p *probeNotifier) Close(context.Context) error {
	p.trace("close")
	return nil
}

func notifierConfig(name, use string, pluginConfig map[string]any) settings.Instance {
	c := instance(name, use, pluginConfig)
	c.Kind = settings.KindNotifier
	return c
}

// notifier returns the only notifier once it is ready.
func (r *run) notifier(t testing.TB) *host.NotifierInstance {
	t.Helper()
	n := r.Notifiers()[0]
	usable(t, r, n)
	return n
}

// usable waits until the instance can be called and its status reports that, which is
// a moment later.
func usable(t testing.TB, r *run, n interface {
	Name() string
	Ready(context.Context) error
}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := n.Ready(ctx); err != nil {
		t.Fatalf("not ready: %v: %+v", err, r.Status())
	}
	eventually(t, func() string {
		for _, st := range r.Status() {
			if st.Name == n.Name() && !st.State.Usable() {
				return fmt.Sprintf("%s is %s (%s, %s)", st.Name, st.State, st.Reason, st.LastError)
			}
		}
		return ""
	})
}

func notification(id string) *sdk.Notification {
	return &sdk.Notification{
		ID: id, Attempt: 1, ExpiresAt: time.Now().Add(time.Hour), Text: "hello",
		Segments: []sdk.Segment{{Kind: sdk.SegmentText, Value: "hel"}, {Kind: sdk.SegmentBold, Value: "lo"}},
		Project:  sdk.ProjectRef{ID: 1, Name: "p"}, Action: sdk.ActionRef{ID: 2, Name: "a", Tags: []string{"x"}},
		Event:  sdk.Event{UUID: "u", ProjectID: 1, Name: "e", DistinctID: "d", Timestamp: time.Now(), ReceivedAt: time.Now(), Properties: []byte(`{"n":1}`)},
		Person: sdk.PersonRef{Display: "d"},
	}
}

func notifications(ids ...string) []*sdk.Notification {
	var out []*sdk.Notification
	for _, id := range ids {
		out = append(out, notification(id))
	}
	return out
}

func TestNotifyResults(t *testing.T) {
	t.Parallel()
	r := start(t, config(notifierConfig("chat", "probe", nil)))
	n := r.notifier(t)
	if p := n.Properties(); p.MaxItems != 3 || p.MaxInFlight != 2 || p.PerSecond != 1 || len(p.Formats) != 1 || p.DedupWindow != time.Hour {
		t.Errorf("properties %+v", p)
	}
	late := notification("late")
	late.ExpiresAt = time.Now().Add(-time.Second)
	elsewhere := notification("wrong")
	elsewhere.Destination = "https://elsewhere.example"
	tests := []struct {
		name    string
		item    *sdk.Notification
		outcome sdk.NotifyOutcome
		class   sdk.Class
		says    string
	}{
		{"is delivered", notification("ok"), sdk.Delivered, 0, ""},
		{"the second time is a duplicate", notification("ok"), sdk.Duplicate, 0, ""},
		{"nothing said is no success", notification("empty"), sdk.Retry, sdk.ClassTransient, "contract_breach"},
		{"an error without a class", notification("transient"), sdk.Retry, sdk.ClassTransient, "not now"},
		{"throttled for ten years", notification("throttled"), sdk.Retry, sdk.ClassThrottled, "slow down"},
		{"never possible", notification("permanent"), sdk.Dropped, sdk.ClassPermanent, "no such channel"},
		{"a panic", notification("panic"), sdk.Retry, sdk.ClassInternal, "no luck"},
		{"too late", late, sdk.Dropped, sdk.ClassPermanent, "expired"},
		{"a destination that is wrong", elsewhere, sdk.Dropped, sdk.ClassPermanent, "revoked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			results, err := n.Notify(t.Context(), []*sdk.Notification{tt.item})
			if err != nil || len(results) != 1 {
				t.Fatalf("%+v %v", results, err)
			}
			got := results[0]
			if got.Outcome != tt.outcome || (got.Err == nil) != (tt.says == "") {
				t.Fatalf("%s %v", got.Outcome, got.Err)
			}
			if e := got.Err; e != nil && (e.Class != tt.class || !strings.Contains(e.Error(), tt.says) || e.RetryAfter < 0 || e.RetryAfter > time.Hour) {
				t.Errorf("%s, %s, after %s", e.Class, e, e.RetryAfter)
			}
			if rate := got.Rate; rate != nil && (rate.ResetAfter < 0 || rate.ResetAfter > time.Hour) {
				t.Errorf("rate %+v", rate)
			}
		})
	}
	if st := r.Status()[0]; !st.State.Usable() || st.Restarts != 0 {
		t.Errorf("status %+v", st)
	}

	// More than fit into a call, in order, each with its own result.
	results, err := n.Notify(t.Context(), notifications("ok-1", "permanent-2", "ok-3", "transient-4", "ok-5", "ok-6", "ok-7"))
	if err != nil || len(results) != 7 {
		t.Fatalf("%+v %v", results, err)
	}
	var said []string
	for _, r := range results {
		said = append(said, r.Outcome.String())
	}
	if got := strings.Join(said, " "); got != "delivered dropped delivered retry delivered delivered delivered" || results[6].MessageID != "m-ok-7" {
		t.Errorf("%s %+v", got, results[6])
	}
}

func TestPreviewSendsNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("hunter2-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	r := start(t, config(notifierConfig("chat", "probe", map[string]any{"trace": trace, "secret": "${file:" + path + "}"})))
	n := r.notifier(t)
	p, err := n.Preview(t.Context(), notification("ok"))
	if err != nil || string(p.Rendered) != "text(hel)bold(lo)" || p.MediaType != "text/plain" || !n.Previews() {
		t.Errorf("%+v %v", p, err)
	}
	if len(p.Warnings) != 1 || strings.Contains(p.Warnings[0], "hunter2") {
		t.Errorf("warnings %q", p.Warnings)
	}
	_, err = n.Preview(t.Context(), &sdk.Notification{})
	var e *sdk.Error
	if !errors.As(err, &e) || e.Class != sdk.ClassPermanent {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(trace); strings.Contains(string(text), "notify") {
		t.Errorf("trace %s", text)
	}
}

func TestNotifierRecoversFromLostSessionAndProcess(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	r := start(t, config(notifierConfig("chat", "probe", map[string]any{"trace": trace})))
	n := r.notifier(t)
	if results, err := n.Notify(t.Context(), notifications("lost")); err != nil || results[0].Outcome != sdk.Retry || results[0].Err.Class != sdk.ClassNotConnected {
		t.Fatalf("%+v %v", results, err)
	}
	usable(t, r, n)
	if results, err := n.Notify(t.Context(), notifications("ok-1")); err != nil || results[0].Outcome != sdk.Delivered {
		t.Fatalf("%+v %v", results, err)
	}
	if text, _ := os.ReadFile(trace); !strings.Contains(string(text), "close\nopen\nnotify ok-1") {
		t.Errorf("trace %s", text)
	}

	// A crash in the middle leaves the outcome unknown.
	_, err := n.Notify(t.Context(), notifications("die"))
	if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassTransient {
		t.Fatalf("%v", err)
	}
	usable(t, r, n)
	kill(t, r.Status()[0].PID, syscall.SIGKILL)
	eventually(t, func() string {
		usable(t, r, n)
		results, err := n.Notify(t.Context(), notifications("ok-2"))
		if err != nil || results[0].Outcome != sdk.Delivered && results[0].Outcome != sdk.Duplicate {
			return fmt.Sprintf("%+v %v", results, err)
		}
		return ""
	})
}

func TestConfigErrorOfNotifyStopsInstance(t *testing.T) {
	t.Parallel()
	r := start(t, config(notifierConfig("chat", "probe", nil)))
	n := r.notifier(t)
	if results, err := n.Notify(t.Context(), notifications("wrong")); err != nil || results[0].Outcome != sdk.Retry {
		t.Fatalf("%+v %v", results, err)
	}
	if st := r.becomes(t, lifecycle.StateMisconfigured); !strings.Contains(st.LastError, "revoked") {
		t.Errorf("error %q", st.LastError)
	}
	if _, err := n.Notify(t.Context(), notifications("ok")); sdk.AsError(err).Code != "plugin_unavailable" || n.Available() {
		t.Errorf("%v", err)
	}
}

func TestHangingNotifierEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	r := start(t, config(hanging(notifierConfig("chat", "probe", nil), 300*time.Millisecond)))
	n := r.notifier(t)
	_, err := n.Notify(t.Context(), notifications("hang"))
	if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassTransient || e.Code != "deadline_exceeded" {
		t.Errorf("%v", err)
	}
}

func TestNotifierViolationsAreRejected(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer string
		want   string // the outcomes, or the code of the error
	}{
		{"empty", "contract_breach"},
		{"more", "contract_breach"},
		{"zero", "delivered retry"},
		{"future", "delivered retry"},
		{"both", "delivered delivered"},
		{"backwards", "retry delivered"},
	} {
		t.Run(tt.answer, func(t *testing.T) {
			t.Parallel()
			r := start(t, config(notifierConfig("chat", "raw", map[string]any{"answer": tt.answer})))
			n := r.notifier(t)
			if p := n.Properties(); p.MaxItems != 100 || p.MaxInFlight != 64 || p.PerSecond != 0 || p.DedupWindow != 0 || p.Formats[0] != sdk.FormatSegments {
				t.Errorf("properties %+v", p)
			}
			results, err := n.Notify(t.Context(), notifications("a", "b"))
			got := ""
			if err != nil {
				got = sdk.AsError(err).Code
			}
			for _, r := range results {
				got = strings.TrimSpace(got + " " + r.Outcome.String())
				if r.Err != nil && r.Err.RetryAfter < 0 || r.Rate != nil && r.Rate.ResetAfter < 0 {
					t.Errorf("%+v", r)
				}
			}
			if got != tt.want {
				t.Errorf("%s %+v %v", got, results, err)
			}
			if st := r.Status()[0]; st.State != lifecycle.StateReady || (st.LastError == "") != (tt.answer == "both" || tt.answer == "backwards") {
				t.Errorf("status %+v", st)
			}
			if _, err := n.Preview(t.Context(), notification("a")); sdk.AsError(err).Class != sdk.ClassUnsupported || n.Previews() {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestInstanceOfAnotherKindIsIncompatible(t *testing.T) {
	t.Parallel()
	c := notifierConfig("n", "file", nil)
	sink := instance("s", "raw", map[string]any{"answer": ""})
	matcher := instance("m", "file", nil)
	matcher.Kind = settings.KindMatcher
	r := start(t, config(c, sink, matcher))
	eventually(t, func() string {
		for i, says := range []string{"file is not a notifier", "raw is not a sink", "file is not a matcher"} {
			if st := r.Status()[i]; st.State != lifecycle.StateIncompatible || !strings.Contains(st.LastError, says) {
				return fmt.Sprintf("%s %s", st.State, st.LastError)
			}
		}
		return ""
	})
	cfg := config(c)
	cfg.Instances[0].Kind = "oracle"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "sink, notifier or matcher") {
		t.Errorf("%v", err)
	}
}

func TestOpenWithoutOutcomeIsRetried(t *testing.T) {
	t.Parallel()
	r := start(t, config(notifierConfig("n", "raw", map[string]any{"answer": "open"})))
	eventually(t, func() string {
		if st := r.Status()[0]; st.State != lifecycle.StateConfigured || !strings.Contains(st.LastError, "contract_breach") {
			return fmt.Sprintf("%s %s", st.State, st.LastError)
		}
		return ""
	})
}

// One binary offers all three kinds, and each instance is of one.
func TestInstancesOfSeveralKinds(t *testing.T) {
	t.Parallel()
	matcher := instance("match", "probe", nil)
	matcher.Kind = settings.KindMatcher
	r := start(t, config(instance("store", "probe", nil), notifierConfig("chat", "probe", nil), matcher))
	if len(r.Sinks()) != 1 || len(r.Notifiers()) != 1 || len(r.Matchers()) != 1 {
		t.Fatalf("%d sinks, %d notifiers, %d matchers", len(r.Sinks()), len(r.Notifiers()), len(r.Matchers()))
	}
	usable(t, r, r.Sinks()[0])
	usable(t, r, r.Matchers()[0])
	write(t, r.Sinks()[0], batch("ok", 0, 1))
	if results, err := r.notifier(t).Notify(t.Context(), notifications("ok")); err != nil || results[0].Outcome != sdk.Delivered {
		t.Errorf("%+v %v", results, err)
	}
}

// BenchmarkNotify measures one notification through a real process.
func BenchmarkNotify(b *testing.B) {
	r := start(b, config(notifierConfig("chat", "probe", nil)))
	n := r.notifier(b)
	i := 0
	for b.Loop() {
		i++
		results, err := n.Notify(b.Context(), notifications(fmt.Sprint("ok-", i)))
		if err != nil || results[0].Outcome != sdk.Delivered {
			b.Fatalf("%+v %v", results, err)
		}
	}
}

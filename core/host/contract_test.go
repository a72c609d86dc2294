package host_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

func TestWriteResults(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("p", "probe", nil)))
	s := r.sink(t)
	tests := []struct {
		id      string
		outcome sdk.Outcome // 0: an error, the outcome is unknown
		class   sdk.Class   // of the rejection, the failure or the error
		says    string
	}{
		{"ok", sdk.Committed, 0, ""},
		{"partial", sdk.Partial, sdk.ClassPermanent, "bad_row: row"},
		{"panic", sdk.Rejected, sdk.ClassInternal, "panic: no luck"},
		{"throttled", sdk.Rejected, sdk.ClassThrottled, "slow down"},
		{"reasonless", sdk.Rejected, sdk.ClassTransient, "without a reason"},
		{"empty", 0, sdk.ClassTransient, "contract_breach: no_outcome"},
		{"behind", 0, sdk.ClassTransient, "contract_breach: watermark_behind"},
		{"ahead", 0, sdk.ClassTransient, "contract_breach: watermark_ahead"},
		{"index", 0, sdk.ClassTransient, "contract_breach: failure_index"},
		{"twice", 0, sdk.ClassTransient, "contract_breach: failure_index"},
	}
	through := uint64(0)
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			b := batch(tt.id, through, 3)
			through += 3
			got, err := s.Write(t.Context(), b)
			var e *sdk.Error
			switch {
			case tt.outcome == 0:
				if !errors.As(err, &e) {
					t.Fatalf("result %+v, error %v", got, err)
				}
			case err != nil:
				t.Fatal(err)
			case got.Outcome == sdk.Rejected:
				e = got.Err
			case got.Outcome == sdk.Partial:
				if len(got.Failures) != 1 || got.Failures[0].Index != 1 {
					t.Fatalf("failures %+v", got.Failures)
				}
				e = got.Failures[0].Err
			}
			if got.Outcome != tt.outcome {
				t.Errorf("outcome %s", got.Outcome)
			}
			if e != nil && (e.Class != tt.class || !strings.Contains(e.Error(), tt.says)) {
				t.Errorf("%s, %s", e.Class, e)
			}
			if e != nil && (e.RetryAfter < 0 || e.RetryAfter > time.Hour) {
				t.Errorf("retry after %s", e.RetryAfter)
			}
		})
	}
	if st := r.Status()[0]; !st.State.Usable() || st.Restarts != 0 || !strings.Contains(st.LastError, "failure_index") {
		t.Errorf("status %+v", st)
	}
}

func TestStagedWatermarkOnlyGrows(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("p", "probe", nil)))
	s := r.sink(t)
	s.Resume(10)
	if got := write(t, s, batch("staged-1", 10, 10)); got.Outcome != sdk.Staged || got.CommittedThrough != 10 {
		t.Errorf("result %+v", got)
	}
	if got := write(t, s, batch("staged-2", 20, 10)); got.CommittedThrough != 20 {
		t.Errorf("result %+v", got)
	}
	if _, err := s.Write(t.Context(), batch("backwards", 30, 10)); err == nil || !strings.Contains(err.Error(), "watermark_backwards") {
		t.Errorf("error %v", err)
	}
	flushed, err := s.Flush(t.Context(), sdk.FlushTimer, 30)
	if err != nil || flushed.CommittedThrough != 30 || r.Status()[0].CommittedThrough != 30 {
		t.Errorf("flush %+v, %v", flushed, err)
	}
	if _, err := s.Flush(t.Context(), sdk.FlushTimer, 5); err == nil || !strings.Contains(err.Error(), "watermark_backwards") {
		t.Errorf("error %v", err)
	}
}

func TestStagingSinkIsFlushedBeforeUpgrade(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	r := start(t, config(instance("p", "stager", map[string]any{"trace": trace})))
	s := r.sink(t)
	if s.Properties().Commit != sdk.CommitOnFlush {
		t.Fatalf("properties %+v", s.Properties())
	}
	write(t, s, batch("staged-1", 0, 9))
	before := s.Session()
	if err := r.Apply(t.Context(), config(instance("p", "stager", map[string]any{"trace": trace, "number": 1}))); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if s.Session() == before || r.Status()[0].State != lifecycle.StateReady {
			return "not replaced"
		}
		return ""
	})
	text, _ := os.ReadFile(trace)
	if !strings.Contains(string(text), "flush 9\nopen p 9\n") || s.CommittedThrough() != 9 {
		t.Errorf("committed through %d, trace %s", s.CommittedThrough(), text)
	}
}

func TestLostConnectionIsReopened(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	r := start(t, config(instance("p", "probe", map[string]any{"trace": trace})))
	s := r.sink(t)
	pid := r.Status()[0].PID
	write(t, s, batch("ok", 0, 7))
	if got := write(t, s, batch("lost", 7, 1)); got.Outcome != sdk.Rejected || got.Err.Class != sdk.ClassNotConnected {
		t.Errorf("result %+v", got)
	}
	ready(t, r, s)
	write(t, s, batch("ok", 7, 1))
	text, _ := os.ReadFile(trace)
	if !strings.Contains(string(text), "close\nopen p 7\nwrite ok") {
		t.Errorf("trace %s", text)
	}
	if st := r.Status()[0]; st.PID != pid || st.Restarts != 0 {
		t.Errorf("restarted: %+v", st)
	}
}

func TestConfigErrorOfWriteStopsInstance(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("p", "probe", nil)))
	s := r.sink(t)
	if got := write(t, s, batch("wrong", 0, 1)); got.Err.Class != sdk.ClassConfig {
		t.Errorf("result %+v", got)
	}
	st := r.becomes(t, lifecycle.StateMisconfigured)
	if !strings.Contains(st.LastError, "table is missing") {
		t.Errorf("error %q", st.LastError)
	}
	eventually(t, func() string {
		if pid := r.Status()[0].PID; pid != 0 {
			return fmt.Sprintf("process %d is still there", pid)
		}
		return ""
	})
	if !r.Release("p") {
		t.Fatal("no such instance")
	}
	r.sink(t)
}

func TestOversizedBatchIsRejectedAsPermanent(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("p", "probe", nil)))
	s := r.sink(t)
	b := batch("ok", 0, 1)
	b.Records[0].JSON = []byte(`"` + strings.Repeat("x", sdk.MaxMessageBytes) + `"`)
	if got := write(t, s, b); got.Outcome != sdk.Rejected || got.Err.Class != sdk.ClassPermanent || got.Err.Code != "message_too_large" {
		t.Errorf("result %+v", got)
	}
	b.Records[0].JSON = b.Records[0].JSON[:16<<20]
	if got := write(t, s, b); got.Outcome != sdk.Committed {
		t.Errorf("16 MiB: %+v", got)
	}
}

func TestPluginSeesOnlyAllowedEnvironment(t *testing.T) {
	t.Setenv("GUIDON_TEST_SECRET", "not for plugins")
	t.Setenv("GUIDON_TEST_ALLOWED", "for this one")
	trace := filepath.Join(t.TempDir(), "trace")
	c := instance("p", "environ", map[string]any{"trace": trace})
	c.Env = settings.Env{Allow: []string{"GUIDON_TEST_ALLOWED"}, Set: map[string]string{"TOKEN": "${env:GUIDON_TEST_SECRET}"}}
	r := start(t, config(c))
	r.sink(t)
	raw, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, want := range []string{"GUIDON_TEST_ALLOWED=for this one\n", "TOKEN=not for plugins\n", "PLUGIN_CLIENT_CERT="} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, leak := range []string{"GUIDON_TEST_SECRET=", "HOME=", "GOPATH=", "PWD="} {
		if strings.Contains(text, leak) {
			t.Errorf("%q leaked", leak)
		}
	}
}

func TestSecretsReachOnlyThePlugin(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "password")
	const secret = `hunter"2-très-secret`
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := func() map[string]any { return map[string]any{"secret": "${file:" + path + "}"} }
	r := start(t, config(instance("p", "chatty", settings()), instance("q", "openconfig", settings())))
	s := r.sink(t)
	got := write(t, s, batch("leak", 0, 1))
	if got.Err.Message != "password [secret]" {
		t.Errorf("message %q", got.Err.Message)
	}
	eventually(t, func() string {
		if st := r.Status()[1]; st.State != lifecycle.StateMisconfigured {
			return string(st.State)
		}
		return ""
	})
	eventually(t, func() string {
		if r.logs.FilterMessage("structured").Len() == 0 {
			return "no log line"
		}
		return ""
	})
	shown := fmt.Sprintf("%+v", r.Status())
	for _, entry := range r.logs.All() {
		shown += fmt.Sprintf("%s %v\n", entry.Message, entry.ContextMap())
	}
	if strings.Contains(shown, "hunter") || !strings.Contains(shown, "the password [secret] is wrong") {
		t.Errorf("shown: %s", shown)
	}
}

func TestPluginOutputIsLogged(t *testing.T) {
	t.Parallel()
	r := start(t, config(instance("p", "chatty", nil)))
	s := r.sink(t)
	_, _ = s.Write(t.Context(), batch("die", 0, 1))
	tests := []struct{ name, message, level, field string }{
		{"a structured line keeps its level and fields", "structured", "warn", "n"},
		{"standard output is heard", "printed to standard output", "info", "raw"},
		{"standard error is heard", "printed to standard error", "info", "raw"},
		{"a panic is one record with its stack", "panic: no luck in a goroutine", "error", "stack"},
	}
	for _, tt := range tests {
		eventually(t, func() string {
			entries := r.logs.FilterMessage(tt.message).All()
			if len(entries) == 0 {
				return tt.name + ": no line"
			}
			fields := entries[0].ContextMap()
			if entries[0].Level.String() != tt.level || fields[tt.field] == nil || fields["instance"] != "p" {
				return fmt.Sprintf("%s: %s %v", tt.name, entries[0].Level, fields)
			}
			return ""
		})
	}
	for _, entry := range r.logs.All() {
		if len(entry.Message) > 9<<10 {
			t.Errorf("a line of %d bytes", len(entry.Message))
		}
	}
}

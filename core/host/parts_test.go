package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/proto"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
)

func TestRestartsComeLaterAndLaterAndThenNotAtAll(t *testing.T) {
	t.Parallel()
	cfg := settings.Default().Restart
	b := host.NewBackoff(cfg)
	now := time.Now()
	for i, want := range []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second} {
		now = now.Add(time.Second)
		if got, quarantine := b.Next(now, 0, 1); got != want || quarantine {
			t.Errorf("exit %d: %s, %t", i+1, got, quarantine)
		}
	}
	if _, quarantine := b.Next(now, 0, 1); !quarantine {
		t.Error("the sixth exit is no quarantine")
	}

	b = host.NewBackoff(cfg)
	for i := range 40 { // every three minutes: never too often, never later than a minute
		now = now.Add(3 * time.Minute)
		if got, quarantine := b.Next(now, time.Minute, 1); got > cfg.Max || quarantine {
			t.Errorf("exit %d: %s, %t", i+1, got, quarantine)
		}
	}
	if got, _ := b.Next(now.Add(time.Hour), cfg.ResetAfter, 1); got != 0 {
		t.Errorf("after a long good time: %s", got)
	}
	if got, _ := b.Next(now.Add(time.Hour), 0, 0.5); got != 125*time.Millisecond {
		t.Errorf("half of the jitter: %s", got)
	}
}

func TestAConfigThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, says string
		change     func(*settings.Config)
	}{
		{"two of one name", `a second instance is named "p"`, func(c *settings.Config) { c.Instances = append(c.Instances, c.Instances[0]) }},
		{"no name", "name must be", func(c *settings.Config) { c.Instances[0].Name = "" }},
		{"name with a slash", "name must be", func(c *settings.Config) { c.Instances[0].Name = "a/b" }},
		{"nothing to use", "use is missing", func(c *settings.Config) { c.Instances[0].Use = "" }},
		{"unknown kind", `kind must be sink, notifier or matcher, not "sinc"`, func(c *settings.Config) { c.Instances[0].Kind = "sinc" }},
		{"unknown restart", "restart must be", func(c *settings.Config) { c.Instances[0].Restart = "maybe" }},
		{"negative timeout", "timeouts", func(c *settings.Config) { c.Instances[0].Timeouts.Call = -1 }},
		{"log level", "log_level", func(c *settings.Config) { c.LogLevel = "loud" }},
		{"log lines", "log_lines_per_second", func(c *settings.Config) { c.LogLinesPerSecond = 0 }},
		{"health interval", "health_interval", func(c *settings.Config) { c.HealthInterval = 0 }},
		{"restart curve", "restart:", func(c *settings.Config) { c.Restart.Max = 0 }},
	}
	for _, tt := range tests {
		c := config(instance("p", "file", nil))
		tt.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if err := settings.Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestReferencesAreReplaced(t *testing.T) {
	t.Setenv("GUIDON_TEST_X", "x-value")
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("two\nlines\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		text, want string
		secret     bool
		err        string
	}{
		{"plain $x {y} ${", "plain $x {y} ${", false, ""},
		{"a ${env:GUIDON_TEST_X} b ${env:GUIDON_TEST_X}", "a x-value b x-value", true, ""},
		{"${file:" + file + "}", "two\nlines", true, ""},
		{"$${env:GUIDON_TEST_X}", "${env:GUIDON_TEST_X}", false, ""},
		{"${env:GUIDON_TEST_NONE}", "", true, "not set"},
		{"${file:/nonexistent}", "", true, "no such file"},
		{"${vault:x}", "", true, "want ${env:NAME} or ${file:/path}"},
	}
	for _, tt := range tests {
		got, secret, err := host.Expand(tt.text)
		if tt.err == "" && (err != nil || got != tt.want) || secret != tt.secret ||
			tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %q %t %v", tt.text, got, secret, err)
		}
	}
}

func TestTheRunDirectoryIsOursAndOldOnesAreSwept(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "gd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	stale := filepath.Join(base, "h1")
	if err := os.MkdirAll(filepath.Join(stale, "plugin-dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stale, "owner"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first, remove, err := host.RunDir(base, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("the stale one is still there")
	}
	second, removeSecond, err := host.RunDir(base, "")
	if err != nil || second == first {
		t.Fatal(second, err)
	}
	if _, err := os.Stat(first); err != nil {
		t.Error("one in use was swept")
	}
	if info, err := os.Stat(first); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	for _, fn := range []func() error{remove, removeSecond} {
		if err := fn(); err != nil {
			t.Error(err)
		}
	}
	// A data directory whose path is too long for a socket is avoided.
	long := filepath.Join(base, strings.Repeat("x", 80))
	path, remove, err := host.RunDir("", long)
	if err != nil || strings.HasPrefix(path, long) {
		t.Fatalf("%s %v", path, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, _, err := host.RunDir(long, ""); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("error %v", err)
	}
	if err := os.Chmod(base, 0o777); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	if _, _, err := host.RunDir(base, ""); err == nil || !strings.Contains(err.Error(), "only we can write") {
		t.Errorf("error %v", err)
	}
}

func TestHostsThatStartTogetherDoNotSweepEachOther(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "gd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				path, remove, err := host.RunDir(base, "")
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(path); err != nil {
					t.Error(err)
				}
				if err := remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestAFloodOfLinesIsDroppedAndCounted(t *testing.T) {
	t.Parallel()
	core, seen := observer.New(zapcore.DebugLevel)
	dropped := 0
	l := host.NewLogs(zap.New(core), 10, func(n int) { dropped += n })
	for i := range 1000 {
		l.Line(fmt.Appendf(nil, "line %d\n", i))
	}
	l.End()
	if n := seen.FilterMessageSnippet("line ").Len(); n < 10 || n > 20 || dropped != 1000-n {
		t.Errorf("%d lines, %d dropped", n, dropped)
	}
	if seen.FilterMessage("plugin log lines were dropped").Len() != 1 {
		t.Error("nobody is told")
	}
	if tail := l.Tail(); len(tail) != 20 || tail[19] != "line 999" {
		t.Errorf("tail %v", tail)
	}
}

// FuzzLog: no line makes the bridge panic or grow.
func FuzzLog(f *testing.F) {
	for _, line := range []string{
		`{"level":"INFO","msg":"x","a":1}`, `{"@level":"trace","@message":"y"}`, `{"level":"panic"}`, `{"level":7}`, "panic: x",
		"{", "\xff\xfe", "", "[ERROR] x",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		core, seen := observer.New(zapcore.DebugLevel)
		l := host.NewLogs(zap.New(core), 1000, func(int) {})
		l.Line(line)
		l.Line([]byte("and another"))
		l.End()
		if seen.Len() > 2 {
			t.Errorf("%d records of two lines", seen.Len())
		}
	})
}

// FuzzAnswer: whatever bytes a plugin answers with, the result either breaks
// the contract or makes sense.
func FuzzAnswer(f *testing.F) {
	for _, out := range []*sinkv1.WriteBatchResponse{
		{}, {Outcome: 1, CommittedThrough: 3}, {Outcome: 3, CommittedThrough: 3, Failures: []*sinkv1.RecordFailure{{Index: 1}}},
		{Outcome: 4}, {Outcome: 99}, {Outcome: 2, CommittedThrough: 1},
	} {
		text, err := proto.Marshal(out)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	b := batch("b", 0, 3)
	f.Fuzz(func(t *testing.T, text []byte) {
		var out sinkv1.WriteBatchResponse
		if proto.Unmarshal(text, &out) != nil {
			return
		}
		r, err := host.Read(&out, b)
		if err != nil {
			return
		}
		switch r.Outcome {
		case sdk.Committed:
			if len(r.Failures) > 0 || r.CommittedThrough != b.LastSeq {
				t.Errorf("%+v", r)
			}
		case sdk.Partial:
			if n := len(r.Failures); n == 0 || n > 3 {
				t.Errorf("%+v", r)
			}
			for _, f := range r.Failures {
				if f.Index < 0 || f.Index > 2 || f.Err == nil || f.Err.Class == sdk.ClassUnspecified || f.Err.RetryAfter < 0 {
					t.Errorf("%+v", f)
				}
			}
		case sdk.Rejected:
			if r.Err == nil || r.Err.Class == sdk.ClassUnspecified {
				t.Errorf("%+v", r)
			}
		case sdk.Staged:
		default:
			t.Errorf("%+v", r)
		}
	})
}

package host_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/status"
)

// A bad plugin is a state with a reason a person understands, and it never
// keeps another instance from working.
func TestStartFailuresBecomeStates(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "plugin")
	tests := []struct {
		name   string
		change func(*settings.Instance)
		state  lifecycle.State
		reason string
		says   string
	}{
		{"ends at once with an error", use("crash"), lifecycle.StateQuarantined, "start", "exited with code 3 while starting; last line: cannot find my own head"},
		{"ends at once without one", use("exit0"), lifecycle.StateQuarantined, "start", "exited with code 0 while starting"},
		{"prints before the handshake", use("noise"), lifecycle.StateQuarantined, "start", `printed before the handshake: "Hello, I am a plugin!"`},
		{"lies about its address", use("liar"), lifecycle.StateQuarantined, "start", "the handshake names unix"},
		{"drowns its last words", use("torrent"), lifecycle.StateQuarantined, "start", "last line: after the flood"},
		{"prints nothing", func(c *settings.Instance) { c.Use, c.Timeouts.Start = "silent", 100*time.Millisecond },
			lifecycle.StateQuarantined, "start", "no handshake within 100ms"},
		{"speaks a later contract", use("future"), lifecycle.StateIncompatible, "protocol", "Plugin version: 99"},
		{"has another name", use("impostor"), lifecycle.StateIncompatible, "unsuitable", "says that it is another-plugin"},
		{"is not known", use("unknown"), lifecycle.StateMisconfigured, "unknown_plugin", `no bundled plugin is named "unknown"`},
		{"is spelt wrong", use("probes"), lifecycle.StateMisconfigured, "unknown_plugin", `did you mean "probe"?`},
		{"panics in open", use("openpanic"), lifecycle.StateConfigured, "open_failed", "panic: no luck"},
		{"does not know a key", set("nubmer", 3), lifecycle.StateMisconfigured, "config", `config/nubmer: unknown key (did you mean "number"?)`},
		{"gets a number out of bounds", set("number", 11), lifecycle.StateMisconfigured, "config", "config/number: must be at most 10"},
		{"gets a word for a number", set("number", "many"), lifecycle.StateMisconfigured, "config", `config/number: must be a whole number (got a string)`},
		{"gets a secret that is not there", set("secret", "${env:GUIDON_TEST_NO_SUCH}"), lifecycle.StateMisconfigured, "unresolved_reference",
			"config/secret: ${env:GUIDON_TEST_NO_SUCH}: the variable is not set"},
		{"is refused by what it talks to", use("openconfig"), lifecycle.StateMisconfigured, "config", "the password"},
		{"is missing", use(missing), lifecycle.StateMisconfigured, "no_such_file", "there is no file " + missing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := instance("p", "probe", nil)
			c.SHA256 = strings.Repeat("0", 64)
			tt.change(&c)
			r := start(t, config(c, instance("good", "probe", nil)))
			eventually(t, func() string {
				st := r.Status()[0]
				if st.State == tt.state && st.Reason == tt.reason && strings.Contains(st.LastError, tt.says) {
					return ""
				}
				return fmt.Sprintf("state %s, reason %q, error %q", st.State, st.Reason, st.LastError)
			})
			ready(t, r, r.Sinks()[1])
		})
	}
}

func use(name string) func(*settings.Instance) {
	return func(c *settings.Instance) { c.Use = name }
}

func set(key string, value any) func(*settings.Instance) {
	return func(c *settings.Instance) { c.Config = map[string]any{key: value} }
}

func TestThirdPartyExecutableNeedsChecksum(t *testing.T) {
	t.Parallel()
	// A plugin of its own: a script that starts this test binary as one.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "acme")
	script := "#!/bin/sh\nexec " + self + " plugin exec acme\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(script))
	digest := hex.EncodeToString(sum[:])
	tests := []struct {
		name, digest string
		state        lifecycle.State
		says         string
	}{
		{"the right one", digest, lifecycle.StateReady, ""},
		{"the right one in capitals", strings.ToUpper(digest), lifecycle.StateReady, ""},
		{"none", "", lifecycle.StateUntrusted, "sha256 is missing"},
		{"a wrong one", strings.Repeat("ab", 32), lifecycle.StateUntrusted, "the checksum of " + path + " is " + digest},
		{"something else", "latest", lifecycle.StateUntrusted, "64 hexadecimal digits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := instance("p", path, nil)
			c.SHA256 = tt.digest
			r := start(t, config(c))
			if st := r.becomes(t, tt.state); !strings.Contains(st.LastError, tt.says) {
				t.Errorf("last error %q", st.LastError)
			}
		})
	}
}

func TestVerifiedCopyIsExecuted(t *testing.T) {
	t.Parallel()
	self, _ := os.Executable()
	path := filepath.Join(t.TempDir(), "acme")
	script := "#!/bin/sh\nexec " + self + " plugin exec acme\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(script))
	c := instance("p", path, nil)
	c.SHA256 = hex.EncodeToString(sum[:])
	r := start(t, config(c))
	r.sink(t)
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	kill(t, r.Status()[0].PID, 9)
	eventually(t, func() string {
		if st := r.Status()[0]; st.State != lifecycle.StateReady || st.Restarts != 1 {
			return string(st.State) + ": " + st.LastError
		}
		return ""
	})
	copied := filepath.Join(r.dir, "plugins", "sha256", c.SHA256)
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("copy: %v, %v", info, err)
	}
}

func TestNewConfigRestartsMisconfiguredInstance(t *testing.T) {
	t.Parallel()
	wrong := instance("p", "probe", map[string]any{"number": 99})
	r := start(t, config(wrong))
	r.becomes(t, lifecycle.StateMisconfigured)
	right := instance("p", "probe", map[string]any{"number": 9})
	if err := r.Apply(t.Context(), config(right)); err != nil {
		t.Fatal(err)
	}
	r.sink(t)
	if st := r.Status()[0]; st.State != lifecycle.StateReady || len(st.Diagnostics) > 0 {
		t.Errorf("status %+v", st)
	}
}

func TestApplyAddsRemovesAndChanges(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	a, b := instance("a", "probe", nil), instance("b", "probe", nil)
	r := start(t, config(a, b))
	r.sink(t)
	changed := r.Changed()
	kept := r.Sinks()[0]
	pidOfA, gone := r.Status()[0].PID, r.Sinks()[1]

	c := instance("c", "probe", map[string]any{"trace": trace})
	if err := r.Apply(t.Context(), config(a, c)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("OnChange was not called")
	}
	ready(t, r, r.Sinks()[1])
	if got := r.Status(); got[0].PID != pidOfA || got[1].Name != "c" || r.Sinks()[0] != kept {
		t.Errorf("status %+v", got)
	}
	if _, err := gone.Write(t.Context(), batch("b", 0, 1)); err == nil {
		t.Error("a write to a removed sink succeeded")
	}

	changed = r.Changed()
	a.Config = map[string]any{"number": 1}
	if err := r.Apply(t.Context(), config(a, c)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if st := r.Status()[0]; st.State != lifecycle.StateReady || st.PID == pidOfA || st.PID == 0 {
			return string(st.State)
		}
		return ""
	})
	select {
	case <-changed:
		t.Error("the set of instances did not change")
	default:
	}
	if err := r.Apply(t.Context(), config(a, a)); err == nil || !strings.Contains(err.Error(), "second instance") {
		t.Errorf("two of one name: %v", err)
	}
}

func TestTransientOpenIsRetried(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	r := start(t, config(instance("p", "opentransient", map[string]any{"trace": trace})))
	s := r.Sinks()[0]
	s.Resume(41)
	r.sink(t)
	st := r.Status()[0]
	text, _ := os.ReadFile(trace)
	if strings.Count(string(text), "open p 41") != 3 || st.Restarts != 0 || !strings.Contains(st.LastError, "not yet") {
		t.Errorf("restarts %d, error %q, trace %s", st.Restarts, st.LastError, text)
	}
	if p := s.Properties(); p.MaxInFlight != 64 || p.Linger != 0 {
		t.Errorf("properties are not bounded: %+v", p)
	}
}

func TestRequiredInstancesDecideReadiness(t *testing.T) {
	t.Parallel()
	bad, good := instance("bad", "crash", nil), instance("good", "probe", nil)
	bad.Required, good.Required = true, true
	r := start(t, config(bad, good))
	r.becomes(t, lifecycle.StateQuarantined)
	eventually(t, func() string {
		err := r.Ready()
		if err == nil || !strings.Contains(err.Error(), "bad is quarantined") || strings.Contains(err.Error(), "good") {
			return "ready: " + errText(err)
		}
		return ""
	})
}

func errText(err error) string {
	if err == nil {
		return "nil"
	}
	return err.Error()
}

func TestReadyInstanceIsAvailable(t *testing.T) {
	t.Parallel()
	h, err := host.New(config(instance("p", "probe", nil)), host.Deps{DataDir: t.TempDir(), Bundled: bundled})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan bool, 100)
	h.OnChange(func(st status.Status) {
		if st.State.Usable() {
			seen <- h.Sinks()[0].Available()
		}
	})
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Stop(context.Background()) })
	if !<-seen {
		t.Error("the state became ready before the gate opened")
	}
}

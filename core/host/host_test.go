package host_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/status"
	"github.com/guidonhq/guidon/plugins/sink/file"
	"github.com/guidonhq/guidon/sdk"
)

// The test binary is also its own plugins, and a host to be killed:
// TestMain tells by the arguments, as the server's executable does.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "plugin" {
		switch os.Args[3] {
		case "file":
			sdk.Serve(file.Plugin())
		case "raw":
			serveRaw(rawRegistrar{})
		case "rawsink":
			serveRaw(rawSinkRegistrar{})
		default:
			sdk.Serve(probePlugin(os.Args[3]))
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "host" {
		hostToBeKilled(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// scripts are plugins that are too broken to be written with the SDK.
var scripts = map[string]string{
	"starved": `echo "fatal error: runtime: out of memory" >&2; exit 2`,
	"killed":  `kill -9 $$`,
	"crash":   `echo "cannot find my own head" >&2; exit 3`,
	"exit0":   `exit 0`,
	"noise":   `echo "Hello, I am a plugin!"; sleep 60`,
	"silent":  `exec sleep 60`,
	"future":  `echo "1|99|unix|/tmp/guidon-$$/missing|grpc|"; sleep 60`,
	"liar":    `echo "1|1|unix|/tmp/guidon-$$/missing|grpc|"; sleep 60`,
	"torrent": `head -c 10000000 /dev/zero | tr '\0' x >&2; echo >&2; echo after the flood >&2; exit 1`,
}

func bundled(name string) []string {
	if script, ok := scripts[name]; ok {
		return []string{"/bin/sh", "-c", script}
	}
	if name == "raw" || name == "rawsink" {
		return rawCommand(name)
	}
	if name == "unknown" || name == "probes" {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{self, "plugin", "exec", name}
}

// patience limits the wait for something that must happen. It is long because the
// machine may be slow, and a test that passes does not use it.
const patience = 3 * time.Minute

// config is a config with short delays between restarts. Exits at any distance count
// for the quarantine.
func config(instances ...settings.Instance) settings.Config {
	cfg := settings.Default()
	cfg.HealthInterval = 100 * time.Millisecond
	cfg.Restart.Initial, cfg.Restart.Max = 10*time.Millisecond, 50*time.Millisecond
	cfg.Restart.QuarantineWindow = time.Hour
	cfg.Instances = instances
	return cfg
}

// instance is an instance whose timeouts a healthy process keeps on a slow machine. A
// test in which a plugin does not answer sets those that it waits for.
func instance(name, use string, pluginConfig map[string]any) settings.Instance {
	return settings.Instance{
		Name: name, Use: use, Kind: settings.KindSink, Config: pluginConfig,
		Timeouts: settings.Timeouts{
			Start: patience, Call: patience, Drain: patience, Flush: patience, Health: patience,
			Stop: 300 * time.Millisecond,
		},
	}
}

// hanging returns c with a limit for calls, and short timeouts of the end of a process
// in which a call does not end.
func hanging(c settings.Instance, call time.Duration) settings.Instance {
	c.Timeouts.Call, c.Timeouts.Drain, c.Timeouts.Flush = call, 100*time.Millisecond, 100*time.Millisecond
	return c
}

// impatient is hanging with a short health check, for processes that are stopped. A
// healthy process must stay within it, too.
func impatient(name, use string, pluginConfig map[string]any) settings.Instance {
	c := hanging(instance(name, use, pluginConfig), patience)
	c.Timeouts.Health = 2 * time.Second
	return c
}

// run is a running host and what it logged.
type run struct {
	*host.Host
	logs    *observer.ObservedLogs
	metrics *prometheus.Registry
	dir     string
}

func start(t testing.TB, cfg settings.Config, logging ...zap.Option) *run {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	r := &run{logs: logs, metrics: prometheus.NewRegistry(), dir: t.TempDir()}
	h, err := host.New(cfg, host.Deps{
		DataDir: r.dir, Version: "1.2.3", Bundled: bundled, BundledNames: []string{"file", "probe"},
		Log: zap.New(core, logging...), Metrics: r.metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Host = h
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

// sink returns the only sink once it is ready.
func (r *run) sink(t testing.TB) *host.SinkInstance {
	t.Helper()
	s := r.Sinks()[0]
	ready(t, r, s)
	return s
}

func ready(t testing.TB, r *run, s *host.SinkInstance) {
	t.Helper()
	usable(t, r, s)
}

// eventually polls until check returns "".
func eventually(t testing.TB, check func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", patience, problem)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// becomes waits for the only instance to be in a state.
func (r *run) becomes(t testing.TB, state lifecycle.State) status.Status {
	t.Helper()
	var st status.Status
	eventually(t, func() string {
		if st = r.Status()[0]; st.State == state {
			return ""
		}
		return fmt.Sprintf("is %s (%s, %s), want %s", st.State, st.Reason, st.LastError, state)
	})
	return st
}

// batch makes a batch of n events after the given sequence number. The probe
// behaves as the first word of the id selects.
func batch(id string, after uint64, n int) *sdk.Batch {
	b := &sdk.Batch{ID: id, Attempt: 1, FirstSeq: after + 1, LastSeq: after + uint64(n), Records: make([]sdk.Record, n)}
	for i := range b.Records {
		rec := &b.Records[i]
		binary.BigEndian.PutUint64(rec.UUID[8:], after+uint64(i)+1)
		e := sdk.Event{UUID: fmt.Sprint(i), ProjectID: 1, Name: "e", DistinctID: "d", Properties: []byte(`{}`)}
		rec.JSON, rec.ProjectID, rec.ReceivedAt = e.AppendJSON(nil), 1, time.Now()
	}
	return b
}

func write(t testing.TB, s *host.SinkInstance, b *sdk.Batch) sdk.WriteResult {
	t.Helper()
	r, err := s.Write(t.Context(), b)
	if err != nil {
		t.Fatalf("write %s: %v", b.ID, err)
	}
	return r
}

func TestBundledFileSinkWritesEvents(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "events.ndjson")
	r := start(t, config(instance("lines", "file", map[string]any{"path": path})))
	s := r.sink(t)
	if p := s.Properties(); p.MaxInFlight != 1 || p.Ordering != sdk.OrderTotal || p.Durability != sdk.DurabilityLocalDisk {
		t.Errorf("properties %+v", p)
	}
	for n := range uint64(3) {
		if got := write(t, s, batch("b", 10*n, 10)); got.Outcome != sdk.Committed || got.CommittedThrough != 10*n+10 {
			t.Errorf("result %+v", got)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 30 {
		t.Errorf("%d lines, %v", strings.Count(string(text), "\n"), err)
	}
	st := r.Status()[0]
	if st.State != lifecycle.StateReady || st.PID == 0 || st.Version != "1.0.0" || st.CommittedThrough != 30 {
		t.Errorf("status %+v", st)
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	c := instance("p", "probe", nil)
	c.Timeouts.Stop = patience
	r := start(t, config(c))
	s := r.sink(t)
	pid := r.Status()[0].PID
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("the process is still there")
	}
	st := r.Status()[0]
	if st.State != lifecycle.StateStopped || st.Exit == nil || st.Exit.Code != 0 || !st.Exit.Expected {
		t.Errorf("status %+v, exit %+v", st, st.Exit)
	}
	if entries, _ := os.ReadDir(filepath.Join(r.dir, "run")); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
	if _, err := s.Write(t.Context(), batch("b", 0, 1)); err == nil {
		t.Error("a write to a stopped sink succeeded")
	}
}

// alive reports whether a process exists. A zombie is dead: only its parent can remove
// it. Where there is no /proc, a zombie counts as alive.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}

	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		_, noProc := os.Stat("/proc/self/stat")
		return noProc != nil
	}

	// The state follows the name of the program, which is in parentheses and may contain some.
	state := stat[bytes.LastIndexByte(stat, ')')+1:]
	return !bytes.HasPrefix(state, []byte(" Z")) && !bytes.HasPrefix(state, []byte(" X"))
}

// Tests that wait for the end of a process depend on alive.
func TestAlive(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if !alive(pid) {
		t.Error("a running process is not alive")
	}

	// It becomes a zombie, which stays until Wait.
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		eventually(t, func() string {
			if alive(pid) {
				return "a zombie is alive"
			}
			return ""
		})
	}

	_ = cmd.Wait()
	if alive(pid) {
		t.Error("a process that is gone is alive")
	}
}

func kill(t testing.TB, pid int, sig syscall.Signal) {
	t.Helper()
	if pid <= 0 {
		t.Fatalf("pid %d", pid)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

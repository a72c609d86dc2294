package main_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a misbehaviour leads to.
const (
	named  = "named"  // its trouble is named in readiness
	usable = "usable" // the instance works all the same
	either = "either" // one of the two, as the seed decides
)

// misbehaviours are the modes of testdata/misbehaving by kind of plugin. All kinds
// have those of "".
var misbehaviours = map[string]map[string]string{
	"": {
		"handshake_never": named, "handshake_exit": named, "handshake_garbage": named, "socket_without_server": named,
		"info_hang": named, "info_nameless": named, "info_kinds": named, "info_huge": named, "info_unknown": named,
		"schema_refuses": named, "schema_invalid": usable, "schema_huge": either, "schema_hang": either,
		"configure_hang": named, "configure_unknown": named, "configure_neither": named, "configure_absurd": named,
		"configure_diagnostics": named, "configure_exit": named, "open_hang": named, "open_unknown": named, "open_neither": named,
		"open_absurd": named, "open_exit": named, "open_status": named,
		"health_hang": named, "health_not_serving": named, "health_failed": named, "health_exit": named,
		"exit_sometime": either, "crash_sometime": either, "freeze": named, "remove_socket": either,
		"flood_stderr": usable, "flood_stdout": either, "memory": named, "busy": usable, "descriptors": either, "children": usable,
		"metrics_flood": usable, "close_hang": usable, "close_unknown": usable, "close_exit": usable, "drain_hang": usable, "ignore_sigterm": usable,
	},
	"sink": {
		"open_numbers": usable, "write_hang": named, "write_unknown": named, "write_status": either, "write_exit": named, "write_outcome": named,
		"write_empty": named, "write_ahead": named, "write_behind": named, "write_indexes": named, "write_absurd": either, "write_huge": named,
		"write_staged": either, "write_throttled": named, "write_slow": usable, "write_poison": either,
	},
	"matcher": {
		"describe_hang": named, "describe_unknown": either, "match_hang": either, "match_unknown": either, "match_exit": either, "match_length": either,
		"match_verdict": either, "match_needs": either, "match_huge": either, "match_slow": either,
	},
}

// instances in one wave of misbehaviours.
const waveSize = 5

// storm is a server with plugins that misbehave beside one good sink.
type storm struct {
	*server
	plugin string
	digest string // SHA-256 of plugin
	random *rand.Rand
	n      int // instances so far
}

// misbehaving is one instance that misbehaves.
type misbehaving struct{ name, kind, mode, leads string }

// TestMisbehaviours runs a good sink beside plugins that misbehave in random ways,
// while clients send events and evaluate flags: the good sink receives every
// acknowledged event once and in order, every evaluation is answered, readiness
// names the troubles, and at the end no process, trouble or memory is left.
// STORM_MISBEHAVIOURS sets how many there are (make misbehave: 100), and
// STORM_SEED (1) which.
func TestMisbehaviours(t *testing.T) {
	longTest(t, "STORM_MISBEHAVIOURS")
	count := intVariable("STORM_MISBEHAVIOURS", 15)
	s := newStorm(t)
	s.configure(t)
	s.start(t)
	s.createFlags(t)
	var good int
	until(t, func() string {
		p := s.plugins(t)["lines"]
		good = p.PID
		if p.State != "ready" {
			return "the good sink is " + p.State
		}
		return ""
	})
	goroutines := s.gauge(t, "go_goroutines")

	load := startTraffic(t, s.server)
	for done := 0; done < count; done += waveSize {
		s.wave(t, min(waveSize, count-done))
		load.check(t)
	}
	s.configure(t)
	s.reload(t)
	s.awaitCalm(t)
	load.stop()
	load.check(t)
	load.checkDelivered(t, s.server)

	if p := s.plugins(t)["lines"]; p.PID != good || p.Restarts != 0 {
		t.Errorf("the good sink was restarted: %+v", p)
	}
	until(t, func() string { return s.leftProcesses(2) })
	until(t, func() string {
		if n := s.gauge(t, "go_goroutines"); n > goroutines+100 {
			return fmt.Sprintf("%.0f goroutines, %.0f before", n, goroutines)
		}
		return ""
	})
	if peak := peakMemory(t, s.cmd.Process.Pid); peak > 512<<20 {
		t.Errorf("the server took up to %d MiB", peak>>20)
	} else {
		t.Logf("%d misbehaviours, %d events, %d evaluations, server memory up to %d MiB", count, len(load.acked), load.evaluations.Load(), peak>>20)
	}
	if err := s.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
	until(t, func() string { return s.leftProcesses(0) })
}

func intVariable(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// newStorm builds the plugin and prepares a server.
func newStorm(t testing.TB) *storm {
	t.Helper()
	seed := uint64(intVariable("STORM_SEED", 1))
	t.Logf("STORM_SEED=%d", seed)
	s := &storm{server: newServer(t), plugin: misbehavingPlugin(t), random: rand.New(rand.NewPCG(seed, 0))}
	text, err := os.ReadFile(s.plugin)
	if err != nil {
		t.Fatal(err)
	}
	s.digest = fmt.Sprintf("%x", sha256.Sum256(text))
	return s
}

// mark is in the environment of every process of a misbehaving plugin.
func (s *storm) mark() string { return "STORM=" + filepath.Base(filepath.Dir(s.dir)) }

// configure writes a config with the good sink, these instances and, unless one is a
// matcher, a matcher that works.
func (s *storm) configure(t testing.TB, instances ...misbehaving) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "plugins:\n  health_interval: 500ms\n  restart: {initial: 20ms, max: 500ms}\n  instances:\n    - {name: lines, kind: sink, use: file, config: {path: %s}}\n", s.lines)
	if !slices.ContainsFunc(instances, func(m misbehaving) bool { return m.kind == "matcher" }) {
		instances = append(instances, misbehaving{name: "matcher", kind: "matcher", mode: "honest"})
	}
	for _, m := range instances {
		fmt.Fprintf(&b, "    - name: %s\n      kind: %s\n      use: %s\n      sha256: %s\n", m.name, m.kind, s.plugin, s.digest)
		fmt.Fprintf(&b, "      env: {set: {MODE: %s, SEED: \"%d\", STORM: %s}}\n", m.mode, s.random.IntN(1_000_000), strings.TrimPrefix(s.mark(), "STORM="))
		b.WriteString("      limits: {memory_bytes: 256MiB, open_files: 64}\n")
		b.WriteString("      timeouts: {start: 2s, open: 1s, call: 1s, flush: 500ms, drain: 200ms, stop: 200ms, health: 500ms}\n")
	}
	write(t, s.config(), b.String())
}

// wave runs n instances that misbehave until each has done so.
func (s *storm) wave(t testing.TB, n int) {
	t.Helper()
	var all []misbehaving
	for i := range n {
		s.n++
		m := misbehaving{name: fmt.Sprintf("bad-%d", s.n), kind: []string{"sink", "sink", "sink", "notifier"}[s.random.IntN(4)]}
		if i == 0 { // one matcher, as flags use its operator
			m.name, m.kind = "matcher", "matcher"
		}
		own := misbehaviours[m.kind]
		if len(own) == 0 || s.random.IntN(3) > 0 {
			own = misbehaviours[""]
		}
		m.mode = slices.Sorted(mapKeys(own))[s.random.IntN(len(own))]
		m.leads = own[m.mode]
		all = append(all, m)
		t.Logf("%s is a %s: %s", m.name, m.kind, m.mode)
	}
	s.configure(t, all...)
	s.reload(t)
	for _, m := range all {
		until(t, func() string { return s.hasMisbehaved(t, m) })
	}
	time.Sleep(time.Duration(s.random.IntN(1500)) * time.Millisecond)
}

// hasMisbehaved returns "" when an instance is in the state that its mode leads to.
func (s *storm) hasMisbehaved(t testing.TB, m misbehaving) string {
	p, found := s.plugins(t)[m.name]
	trouble := s.troubles(t)[m.name]
	switch {
	case !found:
		return m.name + " is not configured"
	case m.leads == named && trouble == "":
		return fmt.Sprintf("readiness names no trouble of %s (%s): %+v", m.name, m.mode, p)
	case m.leads == usable && p.State != "ready" && p.State != "degraded":
		return fmt.Sprintf("%s (%s) is not usable: %+v", m.name, m.mode, p)
	case m.leads == either && p.State != "ready" && trouble == "":
		return fmt.Sprintf("%s (%s) has no trouble and is not ready: %+v", m.name, m.mode, p)
	}
	return ""
}

// reload makes the server read its config, in one of the three ways.
func (s *storm) reload(t testing.TB) {
	t.Helper()
	switch s.random.IntN(3) {
	case 0: // the server notices the change of the file
	case 1:
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	default:
		if out, err := s.guidon("plugin", "reload", "--key", s.personal); err != nil {
			t.Fatalf("reload: %v\n%s", err, out)
		}
	}
}

// awaitCalm waits until the server is ready without troubles and has two plugins.
func (s *storm) awaitCalm(t testing.TB) {
	t.Helper()
	until(t, func() string {
		all := s.plugins(t)
		if len(all) != 2 || all["lines"].State != "ready" || all["matcher"].State != "ready" || len(s.troubles(t)) > 0 || !s.isOK("/_readiness") {
			return fmt.Sprintf("%+v, troubles %v", all, s.troubles(t))
		}
		return ""
	})
}

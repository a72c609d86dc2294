package main_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// diagnosis runs guidon doctor and returns the worst state of each check.
func diagnosis(t *testing.T, s tool, code int, args ...string) map[string]string {
	t.Helper()
	cmd := s.command(append([]string{"doctor", "-o", "json"}, args...)...)
	out, _ := cmd.Output()
	if cmd.ProcessState.ExitCode() != code {
		t.Errorf("exit code %d, want %d: %s", cmd.ProcessState.ExitCode(), code, out)
	}
	var results []struct{ Check, State, Found, Advice string }
	if err := json.Unmarshal(out, &results); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rank := map[string]int{"ok": 1, "warn": 2, "fail": 3}
	worst := map[string]string{}
	for _, r := range results {
		if rank[r.State] > rank[worst[r.Check]] {
			worst[r.Check] = r.State
		}
		if r.State == "fail" && r.Advice == "" || r.Found == "" {
			t.Errorf("%+v", r)
		}
	}
	return worst
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	before := diagnosis(t, s, 0)
	if before["database"] != "warn" || before["journal"] != "warn" || before["ports"] != "ok" || before["plugins"] != "ok" {
		t.Errorf("before the first start: %v", before)
	}
	if _, err := os.Stat(s.data()); !os.IsNotExist(err) {
		t.Errorf("doctor made the data directory: %v", err)
	}
	s.start(t)
	running := diagnosis(t, s, 0)
	for _, check := range []string{"database", "journal", "ports", "plugins"} {
		if running[check] != "ok" {
			t.Errorf("beside a running server: %v", running)
		}
	}
	if err := s.stop(t); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	script := filepath.Join(s.dir, "sink")
	write(t, script, "#!/bin/sh\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, s.config(), "plugins:\n  instances:\n    - {name: lines, kind: sink, use: "+script+", sha256: "+
		"0000000000000000000000000000000000000000000000000000000000000000}\n")
	broken := diagnosis(t, s, 1, "--skip-integrity")
	if broken["ports"] != "fail" || broken["plugins"] != "fail" || broken["database"] != "ok" {
		t.Errorf("with a taken port and another executable: %v", broken)
	}
	s.expect(t, 1, "doctor", "another program listens", "if you have replaced the executable, set sha256 to ", "at least one check failed")
	left, err := filepath.Glob(filepath.Join(s.data(), ".guidon-doctor-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files of the measurement are left: %v %v", left, err)
	}
}

func TestDoctorAsksClickHouse(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	write(t, s.config(), "events: {url: \"clickhouse://127.0.0.1:9/guidon\"}\n")
	s.useDatabase(dbtest.PostgresURL(t))
	if got := diagnosis(t, s, 1, "--skip-integrity"); got["events"] != "fail" || got["journal"] != "warn" {
		t.Errorf("without a ClickHouse: %v", got)
	}
	s.expect(t, 1, "doctor --skip-integrity", "ClickHouse is not reachable", "until then events wait in PostgreSQL")
}

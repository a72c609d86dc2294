package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// backupState reads the state of backups from the readiness of the admin address.
func (s *server) backupState(t *testing.T) (state struct {
	State    string
	Error    string
	LastName string `json:"last_name"`
	Running  bool
}, status string) {
	t.Helper()
	var report struct {
		Status string
		Backup json.RawMessage
	}
	if err := json.Unmarshal(s.readAdmin(t, "/_readiness"), &report); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(report.Backup, &state); err != nil {
		t.Fatal(err)
	}
	return state, report.Status
}

// backUp adds backups to the config of a server.
func (s *server) backUp(t *testing.T, section string) {
	t.Helper()
	text, err := os.ReadFile(s.config())
	if err != nil {
		t.Fatal(err)
	}
	plugins, _, _ := strings.Cut(string(text), "backup:")
	write(t, s.config(), plugins+"backup:\n"+section)
}

func filesLike(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// sendEvents sends n requests and returns the uuids of the acknowledged events.
func (s *server) sendEvents(t *testing.T, n int) map[string]bool {
	t.Helper()
	acked := map[string]bool{}
	for k := range n {
		ids, path, body := captureRequest(s.project, 0, k)
		if code, err := s.post(path, body); err != nil || code != 200 {
			t.Fatalf("%d %v", code, err)
		}
		for _, id := range ids {
			acked[id] = true
		}
	}
	return acked
}

// A server that is killed while it writes a backup leaves a partial file. Its next
// backup removes it, is complete, and restores on another machine with every event that
// was acknowledged before.
func TestBackupsOfAKilledServer(t *testing.T) {
	t.Parallel()
	s, dir := newServer(t), t.TempDir()
	s.backUp(t, "  every: 1h\n  to: "+dir+"\n  rate_bytes: 20000\n")
	s.start(t)
	acked := s.sendEvents(t, 30)
	until(t, func() string {
		if state, _ := s.backupState(t); !state.Running || len(filesLike(t, dir+"/.*.guidon-partial")) != 1 {
			return "no backup is being written"
		}
		return ""
	})
	if out, err := s.guidon("backup", "create", dir+"/other"); err == nil || !strings.Contains(out, "another backup or restore of this installation is running") {
		t.Errorf("a second backup: %v %s", err, out)
	}
	s.kill()
	if partial, complete := filesLike(t, dir+"/.*.guidon-partial"), filesLike(t, dir+"/*.guidon-backup"); len(partial) != 1 || len(complete) > 0 {
		t.Fatalf("after the kill: partial %v, complete %v", partial, complete)
	}

	s.backUp(t, "  every: 1h\n  to: "+dir+"\n")
	s.start(t)
	made := s.waitBackup(t)
	if partial := filesLike(t, dir+"/.*"); len(partial) > 0 {
		t.Errorf("left %v", partial)
	}
	if age := time.Since(time.Unix(int64(s.gauge(t, "guidon_backup_last_success_timestamp_seconds")), 0)); age < 0 || age > 10*time.Minute {
		t.Errorf("the metric has an age of %s", age)
	}
	path := filepath.Join(dir, made)
	if out := s.mustRun(t, "backup", "list"); !strings.Contains(out, path) {
		t.Errorf("list: %s", out)
	}
	for _, args := range [][]string{{"backup", "check"}, {"backup", "check", path}} {
		if out := s.mustRun(t, args...); !strings.Contains(out, "verified "+path) || !strings.Contains(out, "database/guidon.db") || !strings.Contains(out, "journal/journal.db") {
			t.Errorf("%v: %s", args, out)
		}
	}
	until(t, func() string { // an export has sealed entries
		if out := s.mustRun(t, "audit", "export"); !strings.Contains(out, `"scope":"Backup","item_id":"`+made+`","activity":"created"`) {
			return "no entry of the scheduled backup: " + out
		}
		return ""
	})
	s.kill()

	other := newServer(t)
	other.mustRun(t, "restore", path)
	if out := other.mustRun(t, "audit", "export"); !strings.Contains(out, `"scope":"Backup","item_id":"`+made+`","activity":"restored"`) {
		t.Errorf("no entry of the restore: %s", out)
	}
	if out := other.mustRun(t, "audit", "verify"); !strings.Contains(out, "not sealed yet 0") {
		t.Errorf("the log of the restored database: %s", out)
	}
	other.project, other.personal = s.project, s.personal
	other.start(t)
	until(t, func() string { return missingEvents(acked, storedEvents(t, other), "the restored store") })
}

// waitBackup waits until the server has made a backup, and returns its name.
func (s *server) waitBackup(t *testing.T) (name string) {
	t.Helper()
	until(t, func() string { // pauses after failures are up to a minute
		state, _ := s.backupState(t)
		if name = state.LastName; state.State != "ok" || name == "" || state.Running {
			return state.State + " " + state.Error
		}
		return ""
	})
	return name
}

// A place that refuses backups degrades readiness and nothing else, and the first
// backup after its repair ends that.
func TestFailingBackupsDoNotHurtTheServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	s.backUp(t, "  every: 1h\n  to: "+file+"/backups\n")
	s.start(t)
	until(t, func() string {
		state, status := s.backupState(t)
		if state.State != "failing" || state.Error == "" || status != "degraded" {
			return state.State + " " + status
		}
		return ""
	})
	acked := s.sendEvents(t, 5)
	until(t, func() string { return missingEvents(acked, storedEvents(t, s), "the store") })
	if log, err := os.ReadFile(s.log.Name()); err != nil || !strings.Contains(string(log), "backup failed; retrying") {
		t.Errorf("the log does not name the failure: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.waitBackup(t)
	if _, status := s.backupState(t); status != "ready" {
		t.Errorf("status %s", status)
	}
	if err := s.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// The commands of the restore drill work as the guide for operators prints them.
func TestRestoreDrillOfTheGuide(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	acked := s.sendEvents(t, 5)
	until(t, func() string { return missingEvents(acked, storedEvents(t, s), "the store") })
	ran := 0
	for _, block := range fencedBlocks(t, "../../docs/operators.md", "sh") {
		if !strings.Contains(block, "guidon backup ") && !strings.Contains(block, "guidon restore") {
			continue
		}
		ran++
		out, err := s.runCommand("set -e\n" + block)
		if err != nil {
			t.Errorf("%s: %v\n%s", block, err, out)
		}
		if strings.Contains(block, "guidon restore") && (!strings.Contains(out, "database: no damage found") || !strings.Contains(out, `load`)) {
			t.Errorf("the drill prints\n%s", out)
		}
	}
	if ran != 2 {
		t.Errorf("ran %d blocks, want the backup and the drill", ran)
	}
}

// The settings of the guide are valid.
func TestBackupSettingsOfTheGuide(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, block := range fencedBlocks(t, "../../docs/operators.md", "yaml") {
		if !strings.HasPrefix(block, "backup:") {
			continue
		}
		write(t, s.config(), block)
		if out, err := s.runCommand("BACKUP_ACCESS_KEY=me BACKUP_SECRET_KEY=hush guidon project list"); err == nil || !strings.Contains(out, "guidon.db") {
			t.Errorf("want the error of a missing database: %v %s", err, out)
		}
		return
	}
	t.Error("the guide has no settings of backups")
}

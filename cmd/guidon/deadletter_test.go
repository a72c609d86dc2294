package main_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"
)

// insertDeadLetters inserts dead letters of the worker into the server's database,
// as a failing stage does.
func insertDeadLetters(t *testing.T, s *server, events map[string]string) {
	t.Helper()
	d, err := sql.Open("sqlite", "file:"+filepath.Join(s.data(), "guidon.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	now := time.Now().UnixMicro()
	for uuid, name := range events {
		payload := `{"uuid":"` + uuid + `","project_id":1,"event":"` + name + `","distinct_id":"ada",` +
			`"timestamp":"2026-05-01T10:00:00Z","received_at":"2026-05-01T10:00:00Z","properties":{"n":1}}`
		_, err := d.ExecContext(t.Context(), `INSERT INTO dead_letters (project_id, source, event_uuid, event, distinct_id, received_at,
			created_at, failed_at, attempts, class, code, message, seq, payload)
			VALUES (1, 'worker', ?, ?, 'ada', ?, ?, ?, 1, 'permanent', 'refused', 'disk	full', 0, ?)`, uuid, name, now, now, now, payload)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// mustRun runs guidon and returns its output.
func (s *server) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	output, err := s.guidon(args...)
	if err != nil {
		t.Fatalf("guidon %v: %v: %s", args, err, output)
	}
	return output
}

func TestDeadLetterEditAndReplay(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	insertDeadLetters(t, s, map[string]string{
		"018f0000-0000-7000-8000-000000000001": "signed up", "018f0000-0000-7000-8000-000000000002": "paid",
	})

	if output := s.mustRun(t, "deadletter", "list", "--event", "signed up"); !strings.Contains(output, "signed up") || strings.Contains(output, "paid") {
		t.Errorf("list --event prints:\n%s", output)
	}
	if output := s.mustRun(t, "deadletter", "list", "--before", "1h"); strings.Contains(output, "paid") {
		t.Errorf("list --before 1h prints:\n%s", output)
	}
	dry := s.mustRun(t, "deadletter", "replay", "--event", "paid", "--dry-run")
	if !strings.Contains(dry, "would replay 1\n") || !strings.Contains(dry, "disk full") {
		t.Errorf("replay --dry-run prints:\n%s", dry)
	}
	id := strings.Fields(strings.Split(dry, "\n")[2])[0]
	s.mustRun(t, "deadletter", "edit", id, `{"distinct_id": "grace"}`)
	if output := s.mustRun(t, "deadletter", "show", id); !strings.Contains(output, `"grace"`) {
		t.Errorf("show prints:\n%s", output)
	}
	if output := s.mustRun(t, "deadletter", "replay", id); !strings.Contains(output, "1 matched, 1 replayed, 0 failed again, 0 waiting") {
		t.Errorf("replay prints:\n%s", output)
	}
	if output := s.mustRun(t, "events", "tail"); !strings.Contains(output, `"event":"paid","distinct_id":"grace"`) {
		t.Errorf("the replayed event is not stored:\n%s", output)
	}
	if output := s.mustRun(t, "deadletter", "delete", "--all", "--yes"); output != "1 deleted\n" {
		t.Errorf("delete prints %q", output)
	}
}

func TestDeadLetterCommandErrors(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	for want, args := range map[string][]string{
		"name ids, a filter, or --all":     {"deadletter", "delete"},
		"No such dead letter":              {"deadletter", "show", "99"},
		"neither a time":                   {"deadletter", "list", "--after", "soon"},
		"name ids, a filter, or --all ":    {"deadletter", "replay"},
		"expected a valid 64 bit int":      {"deadletter", "show", "x"},
		"would delete 0":                   {"deadletter", "delete", "--dry-run"},
		"0 matched, 0 replayed, 0 failed ": {"deadletter", "replay", "--all"},
	} {
		output, _ := s.guidon(args...)
		if !strings.Contains(output, strings.TrimSpace(want)) {
			t.Errorf("guidon %v prints %q, want %q", args, output, want)
		}
	}
}

package main_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"
)

// setAside puts dead letters of the worker into the server's database, as a
// stage would that cannot take these events.
func setAside(t *testing.T, s *server, events map[string]string) {
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
			VALUES (1, 'worker', ?, ?, 'ada', ?, ?, ?, 1, 'permanent', 'refused', 'no	room', 0, ?)`, uuid, name, now, now, now, payload)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (s *server) says(t *testing.T, args ...string) string {
	t.Helper()
	said, err := s.guidon(args...)
	if err != nil {
		t.Fatalf("guidon %v: %v: %s", args, err, said)
	}
	return said
}

func TestDeadLettersAreMendedAndReplayedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	setAside(t, s, map[string]string{
		"018f0000-0000-7000-8000-000000000001": "signed up", "018f0000-0000-7000-8000-000000000002": "paid",
	})

	if said := s.says(t, "deadletter", "list", "--event", "signed up"); !strings.Contains(said, "signed up") || strings.Contains(said, "paid") {
		t.Errorf("list --event says:\n%s", said)
	}
	if said := s.says(t, "deadletter", "list", "--before", "1h"); strings.Contains(said, "paid") {
		t.Errorf("list of those older than an hour says:\n%s", said)
	}
	dry := s.says(t, "deadletter", "replay", "--event", "paid", "--dry-run")
	if !strings.Contains(dry, "would replay 1\n") || !strings.Contains(dry, "no room") {
		t.Errorf("a dry run says:\n%s", dry)
	}
	id := strings.Fields(strings.Split(dry, "\n")[2])[0]
	s.says(t, "deadletter", "edit", id, `{"distinct_id": "grace"}`)
	if said := s.says(t, "deadletter", "show", id); !strings.Contains(said, `"grace"`) {
		t.Errorf("show says:\n%s", said)
	}
	if said := s.says(t, "deadletter", "replay", id); !strings.Contains(said, "1 matched, 1 replayed, 0 failed again, 0 waiting") {
		t.Errorf("replay says:\n%s", said)
	}
	if said := s.says(t, "events", "tail"); !strings.Contains(said, `"event":"paid","distinct_id":"grace"`) {
		t.Errorf("the event that was replayed is not stored:\n%s", said)
	}
	if said := s.says(t, "deadletter", "delete", "--all"); said != "1 deleted\n" {
		t.Errorf("delete says %q", said)
	}
}

func TestDeadLetterVerbsRefuseWhatIsTooMuchOrNotThere(t *testing.T) {
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
		said, _ := s.guidon(args...)
		if !strings.Contains(said, strings.TrimSpace(want)) {
			t.Errorf("guidon %v says %q, want %q", args, said, want)
		}
	}
}

package main_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// A server on SQLite is killed under load, and once more with records in the journal that
// it has not processed. Its database moves to Postgres, and a server there goes on: each
// acknowledged event is stored once and reaches the sink, and keys, flags, counts of
// actions, persons and the activity log are as before.
func TestServerMovesToPostgres(t *testing.T) {
	longTest(t)
	t.Parallel()
	s := newServer(t)
	s.start(t)
	fillProject(t, s)
	want := readTransferred(t, s, transferPersons)
	people := personProperties(t, s)
	count := actionCount(t, s)
	ids, aliases := loadAndKill(t, s, 0)
	s.start(t)
	unprocessed, merges := killWithBacklog(t, s)
	aliases = append(aliases, merges...)
	acked := map[string]bool{}
	for _, id := range slices.Concat(ids, unprocessed) {
		acked[id] = true
	}
	if n := storedLoad(t, s); n > len(ids) {
		t.Fatalf("%d of %d events are processed: those sent before the kill should not be", n, len(acked))
	}

	url := dbtest.EmptyPostgresURL(t)
	tool{s}.expect(t, 1, "migrate-data --to postgres", "database.url")
	tool{s}.expect(t, 0, "migrate-data --to "+url+" --dry-run", "would copy", "feature_flags")
	s.useDatabase(url)
	killTransfer(t, s, url)
	tool{s}.expect(t, 1, "serve", "unfinished guidon migrate-data")
	tool{s}.expect(t, 0, "migrate-data --from sqlite --to postgres", "copied and compared", "feature_flags", "equal")
	tool{s}.expect(t, 0, "migrate-data --to postgres", "nothing to do")
	tool{s}.expect(t, 0, "migrate-data --to postgres --verify", "compared in")

	s.start(t)
	limit := patience + time.Duration(len(acked))*200*time.Microsecond
	untilWithin(t, limit, func() string { return missingEvents(acked, storedEvents(t, s), "the event store") })
	for id, times := range storedEvents(t, s) {
		if times != 1 {
			t.Errorf("event %s is in the event store %d times", id, times)
		}
	}
	untilWithin(t, limit, func() string { return missingEvents(acked, sinkEvents(t, s), "the file sink") })
	checkMerged(t, s, aliases)
	got := readTransferred(t, s, transferPersons)
	for id, text := range want.events {
		if got.events[id] != text {
			t.Errorf("event\n%s\nwant\n%s", got.events[id], text)
		}
	}
	for id, text := range want.flags {
		if got.flags[id] != text {
			t.Errorf("flags of %s\n%s\nwant\n%s", id, got.flags[id], text)
		}
	}
	for id, text := range personProperties(t, s) {
		if people[id] != "" && people[id] != text {
			t.Errorf("properties of %s\n%s\nwant\n%s", id, text, people[id])
		}
	}
	if now := actionCount(t, s); now != count || count == 0 {
		t.Errorf("the action has %d events, want %d", now, count)
	}
	tool{s}.expect(t, 0, "audit verify", "")
	tool{s}.expect(t, 0, "audit export", `"Database"`, `"copied"`)
	if err := s.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// killWithBacklog sends requests while the server cannot process events, because the test
// holds the lock of its database, and kills the server. It returns what was acknowledged,
// all of which is in the journal only.
func killWithBacklog(t *testing.T, s *server) (ids []string, aliases []alias) {
	t.Helper()
	d, err := sql.Open("sqlite", fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)", filepath.Join(s.data(), "guidon.db"), patience.Milliseconds()))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	lock, err := d.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := lock.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}

	for n := range 40 {
		l := nthLoad(s.project, clients, n, 1)
		until(t, func() string {
			if code, err := s.post(l.path, l.body); err != nil || code != http.StatusOK {
				return fmt.Sprintf("a request is not acknowledged: %d %v", code, err)
			}
			return ""
		})
		ids = append(ids, l.ids...)
		if l.alias.id != "" {
			aliases = append(aliases, l.alias)
		}
	}
	s.kill()

	if _, err := lock.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	return ids, aliases
}

// killTransfer kills a transfer that has copied the tables before events.
func killTransfer(t *testing.T, s *server, url string) {
	t.Helper()
	target, err := db.Open(t.Context(), db.Config{URL: url}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if err := target.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	hold, err := target.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Rollback(t.Context()) }()
	if _, err := hold.Exec(t.Context(), "LOCK TABLE events IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	cmd := tool{s}.command("migrate-data", "--to", "postgres")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		var done bool
		err := target.Pool().QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM data_transfer_tables WHERE name = 'persons' AND done)").Scan(&done)
		if err != nil || !done {
			return fmt.Sprintf("the persons are not copied: %v", err)
		}
		return ""
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// storedLoad counts the events of the load in the SQLite file of a stopped server.
func storedLoad(t *testing.T, s *server) (n int) {
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{}, s.data())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*) FROM events WHERE event = 'load'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// personProperties returns the properties of the persons of fillProject by distinct id.
func personProperties(t *testing.T, s *server) map[string]string {
	t.Helper()
	out := map[string]string{}
	for n := range transferPersons {
		id := fmt.Sprint("user-", n)
		var page struct {
			Results []struct {
				Properties map[string]any `json:"properties"`
			} `json:"results"`
		}
		s.get(t, "/api/projects/1/persons/?distinct_id="+id, &page)
		if len(page.Results) != 1 || page.Results[0].Properties["email"] == nil {
			t.Fatalf("%s: %+v", id, page)
		}
		out[id] = fmt.Sprint(page.Results[0].Properties)
	}
	return out
}

// actionCount returns the number of events of the first action, once they are counted.
func actionCount(t *testing.T, s *server) (count int) {
	t.Helper()
	until(t, func() string {
		var answer struct { // a complete answer leaves out is_calculating
			Count       int             `json:"count"`
			Calculating bool            `json:"is_calculating"`
			Progress    json.RawMessage `json:"progress"`
		}
		s.get(t, "/api/projects/1/actions/1/count/?date_from=all", &answer)
		if answer.Calculating {
			return fmt.Sprintf("the action is being counted: %s", answer.Progress)
		}
		count = answer.Count
		return ""
	})
	return count
}

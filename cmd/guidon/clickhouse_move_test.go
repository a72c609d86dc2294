//go:build e2e

package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
)

// The events of a server move from SQLite through Postgres to ClickHouse. The move is killed
// while it copies, goes on beside the running server, and once more after its end. The server on
// ClickHouse has each acknowledged event once, with the same counts of actions.
func TestClickHouseMoveSurvivesKills(t *testing.T) {
	address := clickhousetest.Start(t)
	clickhousetest.Query(t, address, "DROP DATABASE IF EXISTS moved")
	clickhousetest.Query(t, address, "CREATE DATABASE moved")
	t.Cleanup(func() { clickhousetest.Query(t, address, "DROP DATABASE moved") })
	s := newServer(t)
	s.start(t)
	fillProject(t, s)
	count := actionCount(t, s)
	acked := map[string]bool{}
	load := func(rounds ...int) {
		for _, round := range rounds {
			ids, _ := loadAndKill(t, s, round)
			for _, id := range ids {
				acked[id] = true
			}
			s.start(t)
		}
	}
	load(0)
	if err := s.stop(t); err != nil {
		t.Fatal(err)
	}
	postgres := dbtest.EmptyPostgresURL(t)
	s.useDatabase(postgres)
	tool{s}.expect(t, 0, "migrate-data --to postgres", "copied and compared")

	s.start(t)
	var hold atomic.Bool
	hold.Store(true)
	target := holdInsertions(t, address, &hold)
	killMove(t, s, target)
	hold.Store(false)
	load(1)
	tool{s}.expect(t, 0, "migrate-data --to "+target, "equal", "copied")
	load(2)
	until(t, func() string { return missingEvents(acked, storedEvents(t, s), "the event store") })
	if err := s.stop(t); err != nil {
		t.Fatal(err)
	}
	tool{s}.expect(t, 0, "migrate-data --to "+target, "equal", "copied")
	tool{s}.expect(t, 0, "migrate-data --to "+target+" --verify", "compared all columns")
	tool{s}.expect(t, 0, "migrate-data --to "+target, "copied 0 events")
	yaml, err := os.ReadFile(s.config())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.config(), fmt.Appendf(yaml, "\nevents:\n  url: %q\n", target), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	load(3)
	until(t, func() string { return missingEvents(acked, storedEvents(t, s), "ClickHouse") })
	for id, times := range storedEvents(t, s) {
		if times != 1 {
			t.Errorf("event %s is in ClickHouse %d times", id, times)
		}
	}
	if now := actionCount(t, s); now != count || count == 0 {
		t.Errorf("the action has %d events, want %d", now, count)
	}
	if err := s.stop(t); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// holdInsertions forwards to ClickHouse. While hold is set, an insertion of events is forwarded
// and not answered. It returns the URL for events.url.
func holdInsertions(t *testing.T, address string, hold *atomic.Bool) string {
	t.Helper()
	forward := clickhousetest.Forward(t, address)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hold.Load() && strings.HasPrefix(r.URL.Query().Get("query"), "INSERT INTO guidon_events ") {
			forward.ServeHTTP(httptest.NewRecorder(), r)
			<-r.Context().Done()
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return "clickhouse://default:hush@" + front.Listener.Addr().String() + "/moved"
}

// killMove kills a move with SIGKILL when ClickHouse has some of its events.
func killMove(t *testing.T, s *server, target string) {
	t.Helper()
	cmd := tool{s}.command("migrate-data", "--to", target)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() string {
		if clickhousetest.Query(t, "http://"+u.Host, "EXISTS TABLE moved.guidon_events") != "1" {
			return "there is no table"
		}
		if n := clickhousetest.Query(t, "http://"+u.Host, "SELECT count() FROM moved.guidon_events"); n == "0" {
			return "no event is copied"
		}
		return ""
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

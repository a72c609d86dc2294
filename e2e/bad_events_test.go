//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
)

// TestBadInputOfThePostgresLog starts servers with mistakes in the settings of a log in
// Postgres, and of events in ClickHouse that no server can work with. Each ends with exit
// code 1 and says what is wrong, and which setting it is.
func TestBadInputOfThePostgresLog(t *testing.T) {
	t.Parallel()
	fresh := func() string { return dbtest.PostgresURL(t) }
	database := fresh()
	good := newNode(t, "good", database, "postgres")
	launch(t, good.software)
	good.readPrintedKeys(t)
	good.terminate(t)
	for _, c := range []struct {
		name          string
		database, log string
		settings      []string
		want          []string
	}{
		{"fsync off", fresh(), "postgres", []string{weakRefused}, []string{"the server has fsync off", "journal.accept_weak_topic"}},
		{"no partition", fresh(), "postgres", []string{"GUIDON_JOURNAL_PARTITIONS=0"}, []string{"journal.partitions"}},
		{"too many partitions", fresh(), "postgres", []string{"GUIDON_JOURNAL_PARTITIONS=1000"}, []string{"journal.partitions"}},
		{"an address", fresh(), "postgres://localhost/guidon", nil, []string{"journal.url", "database.url"}},
		{"a journal of its own", database, "", nil, []string{"journal.url"}},
		{"on SQLite", "", "postgres", nil, []string{"database.url"}},
		{"events at another scheme", fresh(), "postgres", []string{"GUIDON_EVENTS_URL=http://localhost/guidon"}, []string{"events.url"}},
		{"events without a server", fresh(), "postgres", []string{"GUIDON_EVENTS_URL=clickhouse://"}, []string{"events.url"}},
		{"events with an unknown parameter", fresh(), "postgres", []string{"GUIDON_EVENTS_URL=clickhouse://localhost/guidon?compress=1"}, []string{"events.url", "compress"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := refused(t, c.database, c.log, c.settings)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in:\n%s", want, tail([]byte(text), 3000))
				}
			}
			if strings.Contains(text, "goroutine ") {
				t.Errorf("output:\n%s", tail([]byte(text), 3000))
			}
		})
	}
	good.start(t)
	eventually(t, time.Minute, "the server of the database is ready", good.ready)
}

// TestTroubleWithClickHouse starts servers whose ClickHouse takes no events. They take
// events in, readiness says why the events wait, and a repaired ClickHouse gets them.
func TestTroubleWithClickHouse(t *testing.T) {
	longTest(t)
	t.Parallel()
	store := clickhousetest.StartServer(t)
	address := strings.TrimPrefix(store.URL, "http://")
	clickhousetest.Query(t, store.URL, "CREATE DATABASE foreign")
	clickhousetest.Query(t, store.URL, "CREATE TABLE foreign.guidon_events (project_id Int32) ENGINE = Log")
	clickhousetest.Query(t, store.URL, "CREATE DATABASE used")
	clickhousetest.Query(t, store.URL, "CREATE DATABASE readable")
	owner := eventNode(t, "clickhouse://default:hush@"+address+"/used")
	owner.waitStored(t, 1)

	for _, c := range []struct {
		name, url, state, want string
		repair                 string // a statement
	}{
		{"nothing listens", "clickhouse://default:hush@" + freeAddress(t) + "/a", "unavailable", "connection refused", ""},
		{"a wrong password", "clickhouse://default:wr0ng@" + address + "/used", "refused", "password", ""},
		{"no such database", "clickhouse://default:hush@" + address + "/missing", "refused", "missing", "CREATE DATABASE missing"},
		{"a table of something else", "clickhouse://default:hush@" + address + "/foreign", "refused", "project_id has the type Int32", "DROP TABLE foreign.guidon_events"},
		{"the events of another Postgres", "clickhouse://default:hush@" + address + "/used", "refused", "another PostgreSQL", ""},
		{"a user who may only read", "clickhouse://reader:hush@" + address + "/readable", "refused", "readonly", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := eventNode(t, c.url)
			eventually(t, time.Minute, "readiness names the cause", func() error {
				if state, message := n.eventStore(t); state != c.state || !strings.Contains(message, c.want) || strings.Contains(message, "wr0ng") {
					return fmt.Errorf("%q: %s", state, message)
				}
				return nil
			})
			if c.repair != "" {
				clickhousetest.Query(t, store.URL, c.repair)
				n.waitStored(t, 1)
			}
		})
	}
	owner.waitStored(t, 1)
}

// eventNode starts a node with its events at a URL, which has accepted an event.
func eventNode(t *testing.T, events string) *node {
	t.Helper()
	n := newNode(t, "events", dbtest.PostgresURL(t), "postgres", "GUIDON_EVENTS_URL="+events)
	launch(t, n.software)
	n.readPrintedKeys(t)
	body := fmt.Sprintf(`{"api_key":%q,"event":"e","distinct_id":"ada"}`, n.project)
	if err := n.status(http.MethodPost, "/capture/", strings.NewReader(body), http.StatusOK); err != nil {
		t.Fatal(err)
	}
	return n
}

// eventStore returns what readiness says of the event store.
func (n *node) eventStore(t *testing.T) (state, message string) {
	t.Helper()
	text, _ := n.page(t, "/_readiness")
	var answer struct {
		Events struct{ State, Message string }
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return answer.Events.State, answer.Events.Message
}

// waitStored waits until the event store has the number of events.
func (n *node) waitStored(t *testing.T, want int) {
	t.Helper()
	eventually(t, 2*time.Minute, "the event store takes events", func() error {
		if state, message := n.eventStore(t); state != "ok" {
			return fmt.Errorf("%q: %s", state, message)
		}
		return nil
	})
	eventually(t, 2*time.Minute, "events are in ClickHouse", func() error {
		if got := len(n.stored(t, "e")); got != want {
			return fmt.Errorf("%d of %d", got, want)
		}
		return nil
	})
}

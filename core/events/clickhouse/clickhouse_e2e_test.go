//go:build e2e

package clickhouse

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap/zaptest"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/health"
	"github.com/guidonhq/guidon/core/events/flagcalls"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
	"github.com/guidonhq/guidon/sdk"
)

func testStore(t testing.TB, d *db.DB, server, database string, outbox int64) (*Store, *events.Service) {
	t.Helper()
	return testStoreOf(t, d, url.UserPassword("default", "hush"), server, database, outbox)
}

func testStoreOf(t testing.TB, d *db.DB, user *url.Userinfo, server, database string, outbox int64) (*Store, *events.Service) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Scheme, u.User, u.Path = "clickhouse", user, "/"+database
	cfg := events.DefaultConfig()
	cfg.URL, cfg.OutboxBytes = u.String(), outbox
	shared := events.NewShared(d)
	log := zaptest.NewLogger(t)
	s, err := New(cfg, d, shared, log)
	if err != nil {
		t.Fatal(err)
	}
	return s, events.NewOn(s, shared, cfg, d, log, nil)
}

// database makes a database of its own in a server.
func database(t *testing.T, server string) string {
	t.Helper()
	name := "t" + strings.ReplaceAll(uuid.NewString(), "-", "")
	clickhousetest.Query(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { clickhousetest.Query(t, server, "DROP DATABASE "+name) })
	return name
}

func testEvents(from, n int) []*sdk.Event {
	out := make([]*sdk.Event, n)
	for i := range out {
		at := time.Date(2026, 3, 1, 0, from+i, 0, 0, time.UTC)
		out[i] = &sdk.Event{
			UUID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, from+i)).String(), ProjectID: 1, Name: "e", DistinctID: fmt.Sprint("u", i%7),
			Timestamp: at, ReceivedAt: at, Properties: json.RawMessage(`{"n":1}`),
		}
	}
	return out
}

func storeEvents(t *testing.T, s *events.Service, list []*sdk.Event, want int) {
	t.Helper()
	if n, err := s.Process(t.Context(), list); err != nil || n != want {
		t.Fatalf("stored %d, want %d: %v", n, want, err)
	}
}

func wantCount(t *testing.T, s *events.Service, want int64) {
	t.Helper()
	if n, err := s.Count(t.Context(), 1, events.Filter{}); err != nil || n != want {
		t.Fatalf("%d events, want %d: %v", n, want, err)
	}
}

// While ClickHouse is away, events are accepted up to the bound of the outbox; then all of
// them are stored once, also those that were sent again meanwhile.
func TestOutage(t *testing.T) {
	server := clickhousetest.StartServer(t)
	clickhousetest.Query(t, server.URL, "CREATE DATABASE away")
	s, service := testStore(t, dbtest.Postgres(t), server.URL, "away", 20_000)
	s.OnStored(func() {})
	storeEvents(t, service, testEvents(0, 100), 100)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Kill(t)
	if _, err := s.db.Write(t.Context()).ExecContext(t.Context(), "DELETE FROM event_outbox_uuids"); err != nil { // as it is after minutes
		t.Fatal(err)
	}
	storeEvents(t, service, testEvents(50, 100), 100) // 50 of them are not found now
	if err := s.Flush(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("insertion without a server: %v", err)
	}
	var err error
	for i := 1; err == nil && i < 100; i++ {
		_, err = service.Process(t.Context(), testEvents(50, 100+i*500))
	}
	if !fault.Is(err, fault.Unavailable) {
		t.Fatalf("a full outbox: %v", err)
	}
	var last int64
	if last, err = s.lastStored(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Start(t)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCount(t, service, last-50) // the rows of repeated events stay empty
	if n := clickhousetest.Query(t, server.URL, "SELECT count() - uniqExact(uuid) FROM away."+eventTable); n != "0" {
		t.Errorf("%s events are stored twice", n)
	}
}

// An insertion whose end is unknown is compared with the stored rows, also by another process.
func TestInterruptedInsertion(t *testing.T) {
	server := clickhousetest.Start(t)
	name, d := database(t, server), dbtest.Postgres(t)
	s, service := testStore(t, d, server, name, 0)
	s.OnStored(func() {})
	storeEvents(t, service, testEvents(0, 300), 300)
	batches, err := s.nextBatches(t.Context())
	if err != nil || len(batches) != 1 {
		t.Fatalf("%d batches: %v", len(batches), err)
	}
	list, _, err := unpackAll(batches)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.insertAll(t.Context(), list[:120]); err != nil { // the process ends here
		t.Fatal(err)
	}
	other, service := testStore(t, d, server, name, 0)
	if err := other.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCount(t, service, 300)
	storeEvents(t, service, testEvents(100, 300), 100)
	if err := s.Flush(t.Context()); err != nil { // the first one comes back
		t.Fatal(err)
	}
	wantCount(t, service, 400)
}

// Queries leave out erased events before ClickHouse has deleted them.
func TestOpenErasure(t *testing.T) {
	server := clickhousetest.Start(t)
	s, service := testStore(t, dbtest.Postgres(t), server, database(t, server), 0)
	s.OnStored(func() {})
	storeEvents(t, service, testEvents(0, 70), 70)
	if n, err := s.recordErasure(t.Context(), 1, []string{"u0", "u'1\\"}); err != nil || n != 10 {
		t.Fatalf("erased %d: %v", n, err)
	}
	wantCount(t, service, 60)
	if n, err := s.recordErasure(t.Context(), 1, []string{"u0"}); err != nil || n != 0 {
		t.Fatalf("erased %d again: %v", n, err)
	}
	known, err := service.Known(t.Context(), testEvents(0, 1))
	if err != nil || !known[0] { // its uuid is in the window
		t.Errorf("known %v: %v", known, err)
	}
	s.Start() // finishes the erasure
	defer s.Stop()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		open, err := s.erased.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(open) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the erasure is not finished after a minute")
		}
	}
	wantCount(t, service, 60)
	if n, err := s.number(context.Background(), "count()", "1"); err != nil || n != 60 {
		t.Errorf("%d events are stored: %v", n, err)
	}
}

// Old events are deleted by project, time and name.
func TestExpiry(t *testing.T) {
	server := clickhousetest.Start(t)
	s, service := testStore(t, dbtest.Postgres(t), server, database(t, server), 0)
	list := testEvents(0, 60)
	list[3].Name = "kept"
	storeEvents(t, service, list, 60)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := events.Expiry{ProjectID: 1, Event: "e", Before: list[10].Timestamp}
	if n, err := service.DeleteExpired(t.Context(), x, 1); err != nil || n != 9 {
		t.Fatalf("deleted %d: %v", n, err)
	}
	wantCount(t, service, 51)
	if n, err := service.DeleteExpired(t.Context(), x, 1); err != nil || n != 0 {
		t.Fatalf("deleted %d again: %v", n, err)
	}
}

func TestRefusals(t *testing.T) {
	server, d := clickhousetest.Start(t), dbtest.Postgres(t)
	refused := func(name, database, want string, d *db.DB) {
		t.Helper()
		s, _ := testStore(t, d, server, database, 0)
		if err := s.prepare(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wrong := database(t, server)
	clickhousetest.Query(t, server, "CREATE TABLE "+wrong+"."+eventTable+" (project_id Int32, event String) ENGINE = Log")
	refused("a wrong table", wrong, "column project_id has the type Int32, not Int64", d)
	refused("no database", "missing", "missing", d)

	used := database(t, server)
	s, _ := testStore(t, d, server, used, 0)
	if err := s.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	another := dbtest.Postgres(t) // a copy of the same template
	if _, err := another.Write(t.Context()).ExecContext(t.Context(), "UPDATE event_outbox_state SET store_id = 'another'"); err != nil {
		t.Fatal(err)
	}
	refused("the events of another", used, "another PostgreSQL", another)

	cfg := events.DefaultConfig()
	for raw, want := range map[string]string{"clickhouse://h/db": "PostgreSQL"} {
		cfg.URL = raw
		sqlite := dbtest.SQLite(t)
		if _, err := Open(cfg, sqlite, zaptest.NewLogger(t), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s with SQLite: %v", raw, err)
		}
	}
	for _, raw := range []string{"http://h/db", "clickhouse://", "clickhouse://h/db?x=1"} {
		cfg.URL = raw
		if _, err := Open(cfg, d, zaptest.NewLogger(t), nil); err == nil || !strings.Contains(err.Error(), "events.url") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// The whole store works over TLS with a certificate that the system does not know.
func TestTLS(t *testing.T) {
	server := clickhousetest.Start(t)
	front := httptest.NewTLSServer(clickhousetest.Forward(t, server))
	defer front.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	name, d := database(t, server), dbtest.Postgres(t)
	cfg := events.DefaultConfig()
	open := func(parameters string) (*Store, *events.Service) {
		cfg.URL = "clickhouses://default:hush@" + front.Listener.Addr().String() + "/" + name + parameters
		shared := events.NewShared(d)
		s, err := New(cfg, d, shared, zaptest.NewLogger(t))
		if err != nil {
			t.Fatal(err)
		}
		return s, events.NewOn(s, shared, cfg, d, zaptest.NewLogger(t), nil)
	}
	s, service := open("?ca_file=" + ca)
	s.OnStored(func() {})
	storeEvents(t, service, testEvents(0, 100), 100)
	if o, err := s.readFigures(t.Context()); err != nil || o.Batches != 1 || o.Events != 100 || o.Bytes == 0 || o.OldestSeconds <= 0 {
		t.Errorf("before the insertion: %+v %v", o, err)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCount(t, service, 100)
	if o, err := s.readFigures(t.Context()); err != nil || o != (health.Outbox{}) {
		t.Errorf("after the insertion: %+v %v", o, err)
	}
	if _, err := Check(t.Context(), cfg.URL); err != nil {
		t.Error(err)
	}
	stranger, _ := open("")
	if err := stranger.prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without ca_file: %v", err)
	}
}

// An event that a constraint of the table refuses is given up, and the others are stored.
func TestConstraint(t *testing.T) {
	server := clickhousetest.Start(t)
	name := database(t, server)
	s, service := testStore(t, dbtest.Postgres(t), server, name, 0)
	s.OnStored(func() {})
	var kept []string
	service.OnRefused(func(_ context.Context, ev *sdk.Event, reason string) error {
		kept = append(kept, ev.DistinctID+" "+reason)
		return nil
	})
	if err := s.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !s.modern() {
		t.Skip("this server has no constraints")
	}
	clickhousetest.Query(t, server, "ALTER TABLE "+name+"."+eventTable+" ADD CONSTRAINT short CHECK length(distinct_id) < 10")
	list := testEvents(0, 500)
	list[123].DistinctID = "longer-than-ten"
	storeEvents(t, service, list, 500)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCount(t, service, 499)
	if len(kept) != 1 || !strings.HasPrefix(kept[0], "longer-than-ten ClickHouse refused (469)") {
		t.Errorf("given up: %q", kept)
	}
}

// The calls of flags are counted by key, time and answer, as in a database.
func TestFlagCalls(t *testing.T) {
	server, d := clickhousetest.Start(t), dbtest.Postgres(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stop atomic.Bool // the time of ctx ends while ClickHouse counts
	proxy := clickhousetest.Forward(t, server)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stop.Load() {
			_, _ = io.Copy(io.Discard, r.Body)
			cancel()
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	s, service := testStore(t, d, front.URL, database(t, server), 0)
	s.OnStored(func() {})
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return from.Add(time.Duration(n) * time.Hour) }
	call := func(project int64, name, flag, response string, at time.Time) *sdk.Event {
		return &sdk.Event{UUID: uuid.NewString(), ProjectID: project, Name: name, DistinctID: "ada", Timestamp: at, ReceivedAt: at,
			Properties: json.RawMessage(fmt.Sprintf(`{"$feature_flag":%q,"$feature_flag_response":%q}`, flag, response))}
	}
	const name = flagcalls.Event
	list := []*sdk.Event{
		call(1, name, "nav", "true", from.Add(-time.Microsecond)), call(1, name, "nav", "true", from), call(1, name, "nav", "true", hour(1).Add(-time.Microsecond)),
		call(1, name, "nav", "false", hour(1)), call(1, name, "nav", "true", hour(3)), call(1, name, "it's", "b", hour(2)),
		call(1, name, "unasked", "true", hour(1)), call(2, name, "nav", "true", hour(1)), call(1, "$pageview", "nav", "true", hour(1)),
	}
	for i := range 40 {
		list = append(list, call(1, name, "many", fmt.Sprint(i), hour(1)))
	}
	storeEvents(t, service, list, len(list))
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := map[string]flagcalls.Result{}
	q := flagcalls.Query{ProjectID: 1, Keys: []string{"quiet", "nav", "many", "it's"}, From: from, To: hour(3), Width: time.Hour, Budget: time.Minute}
	err := flagcalls.New(d, service).Counts(t.Context(), &q, func(key string, r flagcalls.Result) {
		if _, ok := got[key]; ok {
			t.Errorf("%s is counted twice", key)
		}
		r.Counts = slices.SortedFunc(slices.Values(r.Counts), func(a, b flagcalls.Count) int { return cmp.Compare(a.Interval, b.Interval) })
		got[key] = r
	})
	if err != nil || len(got) != len(q.Keys) {
		t.Fatalf("counts %v: %v", got, err)
	}
	for key, want := range map[string][]flagcalls.Count{
		"nav": {{Interval: 0, Response: "true", Calls: 2}, {Interval: 1, Response: "false", Calls: 1}}, "it's": {{Interval: 2, Response: "b", Calls: 1}}, "quiet": nil,
	} {
		if r := got[key]; !r.Counted || !slices.Equal(r.Counts, want) {
			t.Errorf("%s: %v, want %v", key, r, want)
		}
	}
	if r := got["many"]; !r.Counted || len(r.Counts) != 40 {
		t.Errorf("many: %v", r)
	}
	stop.Store(true)
	defer stop.Store(false)
	ended := map[string]flagcalls.Result{}
	if err := s.FlagCalls(ctx, &q, func(key string, r flagcalls.Result) { ended[key] = r }); err == nil || len(ended) != 4 || ended["nav"].Counted || ended["quiet"].Counted {
		t.Errorf("a query that ends: %v, %v", ended, err)
	}
}

package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/plugins/sink/postgres"
	"github.com/guidonhq/guidon/sdk"
)

// opened returns an open sink on a fresh database, and a connection to it.
func opened(t *testing.T, settings string) (*postgres.Sink, *pgx.Conn) {
	t.Helper()
	url := dbtest.EmptyPostgresURL(t)
	s, err := try(t, url, settings)
	if err != nil {
		t.Fatal(err)
	}
	return s, connect(t, url)
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func try(t *testing.T, url, settings string) (*postgres.Sink, error) {
	t.Helper()
	s := postgres.New()
	quoted, err := json.Marshal(url)
	if err != nil {
		t.Fatal(err)
	}
	if err := sdk.DecodeConfig([]byte(`{"url": `+string(quoted)+settings+`}`), s.Config()); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		return s, err
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	_, err = s.Open(t.Context(), sdk.OpenRequest{Instance: "test"})
	return s, err
}

// events makes a batch; change may be nil.
func events(n int, change func(i int, ev *sdk.Event)) *sdk.Batch {
	b := &sdk.Batch{ID: "b", FirstSeq: 1, LastSeq: uint64(n)}
	at := time.Date(2026, 5, 1, 10, 0, 0, 123456000, time.UTC)
	for i := range n {
		id := uuid.New()
		ev := sdk.Event{
			UUID: id.String(), ProjectID: 1, Name: "paid", DistinctID: fmt.Sprint("user ", i), Timestamp: at, ReceivedAt: at,
			Properties: []byte(`{"n":9007199254740993}`),
		}
		if change != nil {
			change(i, &ev)
		}
		b.Records = append(b.Records, sdk.Record{UUID: id, JSON: ev.AppendJSON(nil), ReceivedAt: at, ProjectID: ev.ProjectID})
	}
	return b
}

func count(t *testing.T, c *pgx.Conn, query string) (n int) {
	t.Helper()
	if err := c.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEventsAreRowsEachOnce(t *testing.T) {
	t.Parallel()
	s, c := opened(t, "")
	b := events(500, func(i int, ev *sdk.Event) {
		if i == 7 {
			ev.ElementsChain, ev.PersonID = `a:href="/x"`, uuid.NewString()
		}
	})
	for attempt := range 3 {
		r, err := s.Write(t.Context(), b)
		if err != nil || r.Outcome != sdk.Committed || r.CommittedThrough != b.LastSeq {
			t.Fatalf("write: %+v, %v", r, err)
		}
		if want := uint32(min(attempt, 1) * 500); r.Duplicates != want {
			t.Errorf("attempt %d: %d duplicates, want %d", attempt, r.Duplicates, want)
		}
	}
	if n := count(t, c, "SELECT count(*) FROM events"); n != 500 {
		t.Errorf("%d rows", n)
	}
	n := count(t, c, `SELECT count(*) FROM events WHERE properties->>'n' = '9007199254740993' AND timestamp = '2026-05-01 10:00:00.123456Z'`)
	if n != 500 {
		t.Errorf("%d rows hold what was sent", n)
	}
	if n := count(t, c, `SELECT count(*) FROM events WHERE elements_chain IS NOT NULL AND person_id IS NOT NULL`); n != 1 {
		t.Errorf("%d rows with an element", n)
	}
}

func TestWhatPostgresCannotHoldIsReplaced(t *testing.T) {
	t.Parallel()
	s, c := opened(t, "")
	b := events(1, func(_ int, ev *sdk.Event) {
		ev.DistinctID = "a\x00b"
		ev.Properties = []byte(`{"nul":"x\u0000y","kept":"\\u0000"}`)
	})
	if r, err := s.Write(t.Context(), b); err != nil || r.Outcome != sdk.Committed {
		t.Fatalf("%+v, %v", r, err)
	}
	n := count(t, c, `SELECT count(*) FROM events WHERE distinct_id = E'a\ufffdb' AND properties->>'nul' = E'x\ufffdy' AND properties->>'kept' = E'\\u0000'`)
	if n != 1 {
		t.Error("the event is not stored as it should be")
	}
}

func TestAnEventThatIsRefusedIsReportedAloneAndTheOthersAreKept(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]int{{0}, {99}, {50}, {3, 4, 97}, {}} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			t.Parallel()
			s, c := opened(t, "")
			if _, err := c.Exec(t.Context(), "ALTER TABLE events ADD CHECK (event <> 'forbidden')"); err != nil {
				t.Fatal(err)
			}
			b := events(100, func(i int, ev *sdk.Event) {
				for _, n := range bad {
					if i == n {
						ev.Name = "forbidden"
					}
				}
			})
			r, err := s.Write(t.Context(), b)
			if err != nil || len(r.Failures) != len(bad) {
				t.Fatalf("%+v, %v", r, err)
			}
			for i, f := range r.Failures {
				if f.Index != bad[i] || f.Err.Class != sdk.ClassPermanent || f.Err.Code != "sqlstate_23514" {
					t.Errorf("failure %d: %d %+v", i, f.Index, f.Err)
				}
			}
			if n := count(t, c, "SELECT count(*) FROM events"); n != 100-len(bad) {
				t.Errorf("%d rows", n)
			}
		})
	}
}

func TestAnUnheardOfNumberIsTheEventsFault(t *testing.T) {
	t.Parallel()
	s, _ := opened(t, "")
	b := events(2, func(i int, ev *sdk.Event) {
		if i == 1 {
			ev.Properties = []byte(`{"n":1e999999}`)
		}
	})
	r, err := s.Write(t.Context(), b)
	if err != nil || len(r.Failures) != 1 || r.Failures[0].Index != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// However batches are cut, repeated and cancelled, each event is there once.
func TestAnyRetriesLeaveEachEventOnce(t *testing.T) {
	t.Parallel()
	s, c := opened(t, `, "connections": 4`)
	all := events(2000, nil)
	part := func(from, to int) *sdk.Batch {
		return &sdk.Batch{ID: fmt.Sprint(from), FirstSeq: uint64(from + 1), LastSeq: uint64(to), Records: all.Records[from:to]}
	}
	done := make(chan error)
	for w := range 4 {
		go func() {
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for range 20 {
				from := r.IntN(1900)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+r.IntN(20))*time.Millisecond)
				_, _ = s.Write(ctx, part(from, from+1+r.IntN(100)))
				cancel()
			}
			_, err := s.Write(context.Background(), part(500*w, 500*(w+1)))
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := count(t, c, "SELECT count(*) FROM events"); n != 2000 {
		t.Errorf("%d rows", n)
	}
}

func TestTheTableIsMadeAndGetsNewColumns(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyPostgresURL(t)
	c := connect(t, url)
	odd := `, "schema": "An \"odd\" schema", "table": "Events; DROP TABLE x"`
	exec := func(q string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE SCHEMA "An ""odd"" schema"`)
	if _, err := try(t, url, odd+`, "manage": false`); class(err) != sdk.ClassConfig {
		t.Fatalf("without the table and the right to make it: %v", err)
	}
	if _, err := try(t, url, odd); err != nil {
		t.Fatal(err)
	}
	exec(`ALTER TABLE "An ""odd"" schema"."Events; DROP TABLE x" DROP COLUMN person_id, ADD COLUMN mine text DEFAULT 'x'`)
	s, err := try(t, url, odd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := try(t, url, odd+`, "manage": false`); err != nil {
		t.Fatalf("with the table there: %v", err)
	}
	if _, err := s.Write(t.Context(), events(3, nil)); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("check: %v", err)
	}
	if n := count(t, c, `SELECT count(*) FROM "An ""odd"" schema"."Events; DROP TABLE x" WHERE mine = 'x'`); n != 3 {
		t.Errorf("%d rows", n)
	}
}

func TestManyOpenAtOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyPostgresURL(t)
	done := make(chan error)
	for range 5 {
		go func() {
			_, err := try(t, url, "")
			done <- err
		}()
	}
	for range 5 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestErrorsSayWhoCanHelp(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyPostgresURL(t)
	tests := map[string]struct {
		url, settings string
		class         sdk.Class
		pointer       string
	}{
		"no URL at all":          {"mysql://root:secret-word@host", "", sdk.ClassConfig, "/url"},
		"nobody listens":         {"postgres://u:secret-word@127.0.0.1:1/x", "", sdk.ClassTransient, ""},
		"no such database":       {strings.Replace(url, "?", "x?", 1), "", sdk.ClassConfig, "/url"},
		"no such schema":         {url, `, "schema": "nowhere"`, sdk.ClassConfig, "/table"},
		"a name that is too big": {url, `, "table": "` + strings.Repeat("x", 49) + `"`, sdk.ClassConfig, "/table"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := try(t, tt.url, tt.settings)
			e, ok := errors.AsType[*sdk.Error](err)
			if !ok || e.Class != tt.class || e.Pointer != tt.pointer {
				t.Fatalf("got %#v", err)
			}
			if strings.Contains(err.Error(), "secret-word") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

func TestADatabaseThatComesBackIsUsedAgain(t *testing.T) {
	t.Parallel()
	s, c := opened(t, "")
	if _, err := s.Write(t.Context(), events(1, nil)); err != nil {
		t.Fatal(err)
	}
	// Every connection but this one is cut, as by a restart.
	if _, err := c.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
	b := events(10, nil)
	var err error
	for range 10 { // as the host does
		if _, err = s.Write(t.Context(), b); err == nil {
			break
		}
		if class(err) != sdk.ClassTransient {
			t.Fatalf("class of %v", err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, c, "SELECT count(*) FROM events"); n != 11 {
		t.Errorf("%d rows", n)
	}
}

func class(err error) sdk.Class {
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		return e.Class
	}
	return sdk.ClassUnspecified
}

func BenchmarkWrite(b *testing.B) {
	s := postgres.New()
	quoted, _ := json.Marshal(dbtest.EmptyPostgresURL(b))
	if err := sdk.DecodeConfig([]byte(`{"url": `+string(quoted)+`}`), s.Config()); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Open(b.Context(), sdk.OpenRequest{Instance: "bench"}); err != nil {
		b.Fatal(err)
	}
	defer s.Close(context.Background())
	for b.Loop() {
		b.StopTimer()
		batch := events(5000, nil)
		b.StartTimer()
		if _, err := s.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*5000/b.Elapsed().Seconds(), "events/s")
}

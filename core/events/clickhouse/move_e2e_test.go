//go:build e2e

package clickhouse

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap/zaptest"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
	"github.com/guidonhq/guidon/sdk"
)

// movedEvents are events of three projects with all columns.
func movedEvents(from, n int) []*sdk.Event {
	out := make([]*sdk.Event, n)
	for i := range out {
		k := from + i
		at := time.Date(2026, 1, 1, 0, 13*k, 0, k*1000, time.UTC)
		e := &sdk.Event{
			UUID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, "moved", k)).String(), ProjectID: int64(1 + k%3), Name: fmt.Sprint("e", k%5), DistinctID: fmt.Sprint("u", k%50),
			Timestamp: at, ReceivedAt: at.Add(time.Duration(k%900) * time.Millisecond), ElementsChain: strings.Repeat("a:text", k%2),
			Properties: json.RawMessage(fmt.Sprintf(`{"$current_url":"https://example.com/%d","$browser":"Chrome","text":"line \n '%d' \\","n":%d}`, k%40, k, k)),
		}
		if k%7 == 0 {
			e.Name, e.Properties = "$feature_flag_called", json.RawMessage(`{"$feature_flag":"f","$feature_flag_response":true}`)
		}
		if k%4 == 0 {
			e.PersonID = uuid.NewSHA1(uuid.Nil, fmt.Append(nil, "person", k%50)).String()
		}
		out[i] = e
	}
	return out
}

// unsteady forwards requests to ClickHouse. From the n-th insertion on it forwards one more and
// answers 502 to it and to all later requests.
type unsteady struct {
	*httptest.Server
	left atomic.Int64
}

func newUnsteady(t *testing.T, server string) *unsteady {
	t.Helper()
	forward := clickhousetest.Forward(t, server)
	u := &unsteady{}
	u.left.Store(1 << 40)
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Query().Get("query"), "INSERT") {
			if u.left.Add(-1) == 0 {
				forward.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
		if u.left.Load() <= 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

func moveOnce(t *testing.T, s *Store, source *db.DB, o MoveOptions) *MoveReport {
	t.Helper()
	o.chunk = 100
	r, err := s.Move(t.Context(), source, o)
	if err != nil {
		t.Fatalf("move: %v", err)
	}
	return r
}

// Events move from both databases with interruptions at many places. Events that are stored or
// erased in the source between two runs are copied or removed by the next one. All columns are
// equal at the end, no event is there twice, and a store on ClickHouse continues behind them.
func TestMove(t *testing.T) {
	server := clickhousetest.Start(t)
	dbtest.Run(t, func(t *testing.T, source *db.DB) {
		state := source
		if !source.Postgres() {
			state = dbtest.Postgres(t)
		}
		front := newUnsteady(t, server)
		name := database(t, server)
		s, service := testStore(t, state, front.URL, name, 0)
		s.OnStored(func() {})
		old := events.New(events.DefaultConfig(), source, zaptest.NewLogger(t), nil)
		storeEvents(t, old, movedEvents(0, 1500), 1500)
		for _, project := range []int64{1, 2, 3} {
			if _, err := old.Train(t.Context(), project); err != nil {
				t.Fatal(err)
			}
		}
		storeEvents(t, old, movedEvents(1500, 700), 700) // compressed in SQLite

		if r := moveOnce(t, s, source, MoveOptions{DryRun: true}); len(r.Projects) != 3 || r.Projects[0].Source != 734 || r.Projects[0].Target != 0 {
			t.Errorf("dry run: %+v", r)
		}
		interrupted := 0
		for n := int64(1); ; n += 3 {
			front.left.Store(n)
			_, err := s.Move(t.Context(), source, MoveOptions{chunk: 100})
			if err == nil {
				break
			}
			interrupted++
		}
		front.left.Store(1 << 40)
		if interrupted < 4 {
			t.Errorf("interrupted %d times", interrupted)
		}
		storeEvents(t, old, movedEvents(2200, 300), 300) // meanwhile
		if n, err := old.Erase(t.Context(), 1, []string{"u0", "u3", "u6"}); err != nil || n == 0 {
			t.Fatalf("erased %d: %v", n, err)
		}
		last := moveOnce(t, s, source, MoveOptions{})
		if last.Copied < 290 || last.Removed == 0 || last.Repeated != 0 {
			t.Errorf("the last run: %+v", last)
		}
		if again := moveOnce(t, s, source, MoveOptions{}); again.Copied != 0 || again.Removed != 0 {
			t.Errorf("again: %+v", again)
		}
		moveOnce(t, s, source, MoveOptions{Verify: true})
		if n := clickhousetest.Query(t, server, "SELECT count() - uniqExact(project_id, uuid) FROM "+name+"."+eventTable+" FINAL"); n != "0" {
			t.Errorf("%s events are there twice", n)
		}
		compareStores(t, old, service)

		cp, err := s.Checkpoint(t.Context(), 1)
		if err != nil || cp.Row < last.Through {
			t.Errorf("the checkpoint is %+v behind row %d: %v", cp, last.Through, err)
		}
		storeEvents(t, service, append(movedEvents(2490, 10), movedEvents(3000, 5)...), 5)
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		newest, err := s.After(t.Context(), 0, last.Through, 100)
		if err != nil || len(newest) != 5 {
			t.Errorf("%d events behind row %d: %v", len(newest), last.Through, err)
		}
	})
}

// compareStores compares the answers of two stores for each project.
func compareStores(t *testing.T, old, moved *events.Service) {
	t.Helper()
	for _, project := range []int64{1, 2, 3} {
		var lists [2][]events.Exported
		for i, s := range []*events.Service{old, moved} {
			var err error
			if lists[i], err = s.Export(t.Context(), project, events.ExportQuery{}, 10_000); err != nil {
				t.Fatal(err)
			}
		}
		if len(lists[0]) == 0 || len(lists[0]) != len(lists[1]) {
			t.Fatalf("project %d: %d events, want %d", project, len(lists[1]), len(lists[0]))
		}
		for i := range lists[0] {
			want, _ := json.Marshal(lists[0][i])
			if got, _ := json.Marshal(lists[1][i]); string(got) != string(want) {
				t.Fatalf("project %d\n%s\nwant\n%s", project, got, want)
			}
		}
	}
}

// Events that are moved after ClickHouse has some of its own keep their rows; one that was sent
// again meanwhile counts once. An erasure reaches events that are not moved yet.
func TestMoveLate(t *testing.T) {
	server, d := clickhousetest.Start(t), dbtest.Postgres(t)
	old := events.New(events.DefaultConfig(), d, zaptest.NewLogger(t), nil)
	storeEvents(t, old, movedEvents(0, 250), 250)
	s, service := testStore(t, d, server, database(t, server), 0)
	s.OnStored(func() {})
	storeEvents(t, service, movedEvents(240, 60), 60) // 10 of them are in the database, too
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if row, err := s.Last(t.Context()); err != nil || row != 310 {
		t.Errorf("the last row is %d: %v", row, err)
	}
	erased := 0
	for _, e := range movedEvents(0, 300) {
		if e.ProjectID == 1 && e.DistinctID == "u6" {
			erased++
		}
	}
	if n, err := service.Erase(t.Context(), 1, []string{"u6"}); err != nil || n != int64(erased) {
		t.Fatalf("erased %d, want %d: %v", n, erased, err)
	}
	r := moveOnce(t, s, d, MoveOptions{})
	if r.Repeated != 10 || r.Copied == 0 {
		t.Errorf("%+v", r)
	}
	moveOnce(t, s, d, MoveOptions{Verify: true})
	if n, err := s.number(t.Context(), "count()", "1"); err != nil || n != int64(300-erased) {
		t.Errorf("%d events, want %d: %v", n, 300-erased, err)
	}
	if n, err := s.number(t.Context(), "count()", "project_id = 1 AND distinct_id = 'u6'"); err != nil || n != 0 {
		t.Errorf("%d erased events: %v", n, err)
	}
}

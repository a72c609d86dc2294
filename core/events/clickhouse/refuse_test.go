package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap/zaptest"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/health"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// refusingServer answers as a ClickHouse with the tables of a store, and keeps the rows of
// events. trouble returns the answer to an insertion, empty for success.
type refusingServer struct {
	mu         sync.Mutex
	stored     map[int64]string // distinct ids by row
	insertions int
	trouble    func(list []event) string
}

func (f *refusingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	statement := r.URL.Query().Get("query") + " " + string(body)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case strings.Contains(statement, "SELECT version()"):
		_, _ = w.Write(appendString(nil, "24.8.1.1"))
	case strings.Contains(statement, "INSERT INTO "+eventTable+" "):
		f.insertions++
		if text := f.insert(body); text != "" {
			code, _ := strconv.Atoi(strings.TrimPrefix(strings.SplitN(text, ".", 2)[0], "Code: "))
			w.Header().Set("X-ClickHouse-Exception-Code", fmt.Sprint(code))
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, text)
		}
	case strings.Contains(statement, "SELECT row FROM "):
		for row := range f.stored {
			_, _ = w.Write(appendInt(nil, row))
		}
	}
}

func (f *refusingServer) insert(body []byte) string {
	var list []event
	for r := wire.NewReader(bytes.NewReader(body)); r.More(); {
		list = append(list, readEvent(r))
	}
	if text := f.trouble(list); text != "" {
		return text
	}
	for i := range list {
		f.stored[list[i].row] = list[i].distinctID
	}
	return ""
}

// ids returns the stored distinct ids in the order of rows.
func (f *refusingServer) ids() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rows []int64
	for row := range f.stored {
		rows = append(rows, row)
	}
	slices.Sort(rows)
	for _, row := range rows {
		out = append(out, f.stored[row])
	}
	return out
}

// refusing returns a store on a server of its own, with what it gives up.
func refusing(t *testing.T, trouble func(list []event) string) (*Store, *events.Service, *refusingServer, *[]string) {
	t.Helper()
	f := &refusingServer{stored: map[int64]string{}, trouble: trouble}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	d, cfg, kept := dbtest.Postgres(t), events.DefaultConfig(), &[]string{}
	cfg.URL = "clickhouse://" + strings.TrimPrefix(server.URL, "http://") + "/guidon"
	shared := events.NewShared(d)
	s, err := New(cfg, d, shared, zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	s.schema.checked, s.schema.version = true, [2]int{24, 8}
	s.OnStored(func() {})
	service := events.NewOn(s, shared, cfg, d, zaptest.NewLogger(t), nil)
	service.OnRefused(func(_ context.Context, ev *sdk.Event, reason string) error {
		*kept = append(*kept, ev.DistinctID+": "+reason+": "+string(ev.Properties))
		return nil
	})
	return s, service, f, kept
}

func eventsOf(ids ...string) (out []*sdk.Event) {
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, id := range ids {
		out = append(out, &sdk.Event{
			UUID: uuid.NewSHA1(uuid.Nil, []byte(id)).String(), ProjectID: 1, Name: "e", DistinctID: id, Timestamp: at, ReceivedAt: at,
			Properties: []byte(`{"$current_url":"https://example.com/a","n":1}`),
		})
	}
	return out
}

func process(t *testing.T, s *events.Service, list []*sdk.Event, want int) {
	t.Helper()
	if n, err := s.Process(t.Context(), list); err != nil || n != want {
		t.Fatalf("stored %d, want %d: %v", n, want, err)
	}
}

const violated = "Code: 469. DB::Exception: Constraint `short` for table guidon_events is violated at row 1. (VIOLATED_CONSTRAINT)"

// refuseBad refuses insertions with an event whose distinct id begins with bad.
func refuseBad(list []event) string {
	if slices.ContainsFunc(list, func(e event) bool { return strings.HasPrefix(e.distinctID, "bad") }) {
		return violated
	}
	return ""
}

// An event that ClickHouse refuses for its data is given up, and the others are stored. It
// can be stored later, when ClickHouse takes it.
func TestRefusedEventIsGivenUp(t *testing.T) {
	s, service, f, kept := refusing(t, refuseBad)
	var ids, good []string
	for i := range 1000 {
		if i == 17 || i == 600 || i == 601 {
			ids = append(ids, fmt.Sprint("bad", i))
			continue
		}
		ids, good = append(ids, fmt.Sprint("u", i)), append(good, fmt.Sprint("u", i))
	}
	list := eventsOf(ids...)
	process(t, service, list, 1000)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.ids(); !slices.Equal(got, good) {
		t.Errorf("%d events are stored, want %d", len(got), len(good))
	}
	if len(*kept) != 3 || !strings.HasPrefix((*kept)[0], "bad17: ClickHouse refused (469): Constraint `short`") || !strings.Contains((*kept)[0], `"https://example.com/a"`) ||
		!strings.HasPrefix((*kept)[1], "bad600: ") || !strings.HasPrefix((*kept)[2], "bad601: ") {
		t.Errorf("given up: %q", *kept)
	}
	if f.insertions > 60 {
		t.Errorf("%d insertions for three events", f.insertions)
	}
	if st := s.health.Current(); st.Degraded() {
		t.Errorf("the status is %+v", st)
	}
	f.trouble = func([]event) string { return "" }
	process(t, service, list[17:19], 1) // a replay
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.ids(); got[len(got)-1] != "bad17" {
		t.Errorf("stored last: %s", got[len(got)-1])
	}
}

// Everything but a single bad event waits, and is in the status.
func TestTroubleOfTheServerWaits(t *testing.T) {
	for name, text := range map[string]string{
		"read-only user":   "Code: 497. DB::Exception: guidon: Not enough privileges. To execute this query, it's necessary to have the grant INSERT ON guidon.guidon_events. (ACCESS_DENIED)",
		"read-only mode":   "Code: 164. DB::Exception: Cannot execute query in readonly mode. (READONLY)",
		"disk full":        "Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space. (NOT_ENOUGH_SPACE)",
		"too many parts":   "Code: 252. DB::Exception: Too many parts (3000). Merges are processing significantly slower than inserts. (TOO_MANY_PARTS)",
		"memory":           "Code: 241. DB::Exception: Memory limit (total) exceeded. (MEMORY_LIMIT_EXCEEDED)",
		"no table":         "Code: 60. DB::Exception: Table guidon.guidon_events does not exist. (UNKNOWN_TABLE)",
		"all are refused":  violated,
		"trouble meantime": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := true
			s, service, f, kept := refusing(t, func(list []event) string {
				switch {
				case !broken:
					return refuseBad(list)
				case text != "":
					return text
				case len(list) > 2:
					return refuseBad(list)
				}
				return "Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space. (NOT_ENOUGH_SPACE)"
			})
			process(t, service, eventsOf("a", "b", "c", "d", "bad", "e", "f", "g"), 8)
			err := s.Flush(t.Context())
			if !fault.Is(err, fault.Unavailable) {
				t.Fatalf("got %v", err)
			}
			if s.health.Record(err); s.health.Current().State != health.Refused || !strings.Contains(s.health.Current().Message, "DB::Exception") && !strings.Contains(s.health.Current().Message, "ClickHouse refused") {
				t.Errorf("the status is %+v", s.health.Current())
			}
			if len(*kept) > 0 {
				t.Errorf("given up: %q", *kept)
			}
			f.mu.Lock()
			broken = false
			f.mu.Unlock()
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := f.ids(); fmt.Sprint(got) != "[a b c d e f g]" || len(*kept) != 1 {
				t.Errorf("stored %v, given up %q", got, *kept)
			}
		})
	}
}

// A lone event that is refused waits for others: nothing else tells it from a broken table.
func TestLoneRefusedEventWaits(t *testing.T) {
	s, service, f, kept := refusing(t, refuseBad)
	process(t, service, eventsOf("bad"), 1)
	if err := s.Flush(t.Context()); !fault.Is(err, fault.Unavailable) || len(*kept) > 0 {
		t.Fatalf("got %v, given up %q", err, *kept)
	}
	process(t, service, eventsOf("a"), 1)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.ids(); fmt.Sprint(got) != "[a]" || len(*kept) != 1 {
		t.Errorf("stored %v, given up %q", got, *kept)
	}
}

// An insertion that failed behind a part of its events does not store these twice, and gives
// none of them up.
func TestPartOfARefusedInsertion(t *testing.T) {
	var f *refusingServer
	repeated := 0
	trouble := func(list []event) string {
		for i := range list {
			if _, there := f.stored[list[i].row]; there {
				repeated++
			}
		}
		if text := refuseBad(list); text != "" {
			f.stored[list[0].row] = list[0].distinctID
			return text
		}
		return ""
	}
	s, service, server, kept := refusing(t, trouble)
	f = server
	process(t, service, eventsOf("a", "b", "c", "bad1", "d", "e"), 6)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.ids(); repeated > 0 || fmt.Sprint(got, *kept) != "[a b c bad1 d e] []" {
		t.Errorf("stored %v, %d twice, given up %q", got, repeated, *kept)
	}
}

// An attempt that stored the good events and failed behind that, at the dead letters or the
// commit, is finished by the next one, which has only the refused events to store.
func TestAttemptThatFailedBehindItsInsertions(t *testing.T) {
	s, service, f, kept := refusing(t, refuseBad)
	fails := true
	service.OnRefused(func(_ context.Context, ev *sdk.Event, _ string) error {
		if fails {
			return errors.New("no space")
		}
		*kept = append(*kept, ev.DistinctID)
		return nil
	})
	process(t, service, eventsOf("a", "bad1", "b", "bad2"), 4)
	if err := s.Flush(t.Context()); err == nil {
		t.Fatal("no error without a place for refused events")
	}
	if got := f.ids(); fmt.Sprint(got) != "[a b]" {
		t.Fatalf("the first attempt stored %v", got)
	}
	fails = false
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.ids(); fmt.Sprint(got, *kept) != "[a b] [bad1 bad2]" {
		t.Errorf("stored %v, given up %v", got, *kept)
	}
}

// Many refused events are given up in several transactions, each once, also if they are the
// first and more than one transaction gives up.
func TestManyRefusedEvents(t *testing.T) {
	s, service, f, kept := refusing(t, refuseBad)
	var ids, good []string
	for i := range 1500 {
		if id := fmt.Sprint("u", i); i < 250 || i%7 == 0 {
			ids = append(ids, "bad"+id)
		} else {
			ids, good = append(ids, id), append(good, id)
		}
	}
	for part := range slices.Chunk(eventsOf(ids...), 400) {
		process(t, service, part, len(part))
	}
	attempts, most := 0, 0
	for len(*kept)+len(f.ids()) < len(ids) && attempts < 100 {
		f.insertions = 0
		if _, err := s.flushOnce(t.Context()); err != nil && !fault.Is(err, fault.Unavailable) {
			t.Fatal(err) // samples may all be refused
		}
		attempts, most = attempts+1, max(most, f.insertions)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.ids(); !slices.Equal(got, good) {
		t.Errorf("%d events are stored, want %d", len(got), len(good))
	}
	if n := len(*kept); n != len(ids)-len(good) || len(slices.Compact(slices.Sorted(slices.Values(*kept)))) != n {
		t.Errorf("%d are given up, want %d", n, len(ids)-len(good))
	}
	if attempts < 3 || most > 330 {
		t.Errorf("%d attempts with up to %d insertions", attempts, most)
	}
}

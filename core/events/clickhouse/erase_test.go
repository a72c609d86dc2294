package clickhouse

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/mutation"
	"github.com/guidonhq/guidon/core/fault"
)

// mutatingServer is a refusingServer with mutations, which end when the test says so.
type mutatingServer struct {
	refusingServer
	mu       sync.Mutex
	commands []string
	done     map[int]bool
	reason   string // of the unfinished ones
	denied   bool   // system.mutations must not be read
	polls    int
	late     int64 // events that a count finds
}

func (f *mutatingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	statement := string(body)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case strings.HasPrefix(statement, "ALTER TABLE "+eventTable+" DELETE WHERE "):
		f.commands = append(f.commands, statement)
	case strings.Contains(statement, "FROM system.columns WHERE database = 'system'"):
		_, _ = w.Write(appendString(nil, "latest_fail_reason"))
	case strings.Contains(statement, "FROM system.mutations"):
		if f.polls++; f.denied {
			w.Header().Set("X-ClickHouse-Exception-Code", "497")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "Code: 497. DB::Exception: Not enough privileges.")
			return
		}
		tag := ""
		if _, rest, ok := strings.Cut(statement, "position(command, '"); ok {
			tag, _, _ = strings.Cut(rest, "'")
		}
		for i, command := range f.commands {
			own, done, reason := int64(0), int64(0), f.reason
			if tag != "" && strings.Contains(command, tag) {
				own = 1
			}
			if f.done[i] {
				done, reason = 1, ""
			}
			if own+1-done > 0 {
				row := appendString(appendString(nil, fmt.Sprintf("mutation_%d.txt", i)), reason)
				_, _ = w.Write(appendInt(appendInt(row, done), own))
			}
		}
	case strings.HasPrefix(statement, "SELECT toInt64(count()) FROM "+eventTable):
		_, _ = w.Write(appendInt(nil, f.late))
	default:
		r.Body = io.NopCloser(strings.NewReader(statement))
		f.refusingServer.ServeHTTP(w, r)
	}
}

// set changes the state of f.
func (f *mutatingServer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *mutatingServer) counts() (commands, polls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.commands), f.polls
}

// mutating returns a store on a mutatingServer, and a recorded erasure of a distinct id for
// each of ids.
func mutating(t *testing.T, ids ...string) (*Store, *events.Service, *mutatingServer) {
	t.Helper()
	f := &mutatingServer{refusingServer: refusingServer{stored: map[int64]string{}, trouble: func([]event) string { return "" }}, done: map[int]bool{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	d, cfg := dbtest.Postgres(t), events.DefaultConfig()
	cfg.URL = "clickhouse://" + strings.TrimPrefix(server.URL, "http://") + "/guidon"
	shared := events.NewShared(d)
	s, err := New(cfg, d, shared, zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	s.schema.checked, s.schema.version = true, [2]int{24, 8}
	for _, id := range ids {
		if err := s.erased.Add(t.Context(), 1, []string{id}, 100); err != nil {
			t.Fatal(err)
		}
	}
	return s, events.NewOn(s, shared, cfg, d, zaptest.NewLogger(t), nil), f
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func (s *Store) openErasures(t *testing.T) int {
	t.Helper()
	list, err := s.erased.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// A mutation that fails does not stop insertions after a restart, is in the status, is started
// once, and ends when ClickHouse can delete again.
func TestFailingDeletionDoesNotStopInsertions(t *testing.T) {
	s, service, f := mutating(t, "erased")
	f.reason = "Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space"
	s.Start()
	defer s.Stop()
	eventually(t, "the failure in the status", func() bool {
		st := s.health.Current()
		return strings.Contains(st.DeletionError, "not enough space") && st.Degraded() && !st.Down()
	})
	process(t, service, eventsOf("a", "b"), 2)
	eventually(t, "the insertion", func() bool { return len(f.ids()) == 2 })
	eventually(t, "further attempts", func() bool { _, polls := f.counts(); return polls > 6 })
	if n, _ := f.counts(); n != 1 {
		t.Errorf("%d mutations of one erasure", n)
	}
	f.set(func() { f.done[0] = true })
	eventually(t, "the end of the erasure", func() bool { return s.openErasures(t) == 0 && !s.health.Current().Degraded() })
	if n, _ := f.counts(); n != 1 {
		t.Errorf("%d mutations of one erasure", n)
	}
}

// A user who cannot read system.mutations starts no mutation, however often it is tried.
func TestUnreadableMutationsDoNotPileUp(t *testing.T) {
	s, _, f := mutating(t, "erased")
	f.denied = true
	s.Start()
	defer s.Stop()
	eventually(t, "three attempts", func() bool { _, polls := f.counts(); return polls > 2 })
	if n, _ := f.counts(); n != 0 {
		t.Errorf("%d mutations", n)
	}
	eventually(t, "the failure in the status", func() bool { return strings.Contains(s.health.Current().DeletionError, "Not enough privileges") })
}

// An erasure waits for its own mutation only, for a bounded time, and a later call waits for
// the same mutation.
func TestErasureWaitsForItsOwnMutation(t *testing.T) {
	s, _, f := mutating(t, "slow", "quick")
	s.eraseTimeout = 50 * time.Millisecond
	if err := s.deleteErased(t.Context(), 1, []string{"slow"}); !fault.Is(err, fault.Unavailable) || err != mutation.ErrUnfinished { //nolint:errorlint // it is the value itself
		t.Fatalf("a deletion that takes long: %v", err)
	}
	f.set(func() { f.done[1] = true })
	s.eraseTimeout = time.Minute
	if err := s.deleteErased(t.Context(), 1, []string{"quick", "other"}); err != nil {
		t.Fatal(err)
	}
	if n := s.openErasures(t); n != 1 {
		t.Errorf("%d open erasures", n)
	}
	s.eraseTimeout = 50 * time.Millisecond
	if err := s.finishRecorded(t.Context()); err != nil {
		t.Errorf("an unfinished one is an error: %v", err)
	}
	if n, _ := f.counts(); n != 2 {
		t.Errorf("%d mutations", n)
	}
	f.set(func() { f.done[0] = true })
	s.eraseTimeout = time.Minute
	if err := s.finishRecorded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.openErasures(t); n != 0 {
		t.Errorf("%d open erasures", n)
	}
}

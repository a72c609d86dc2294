package clickhouse

import (
	"bytes"
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
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// lateServer answers the first insertion of events with an error, and runs it when arrive is
// called. It drops insertions with a token that it has seen.
type lateServer struct {
	mu     sync.Mutex
	late   func()
	failed bool
	tokens map[string]bool
	copies map[int64]int // of the stored rows
}

func (f *lateServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	statement := r.URL.Query().Get("query") + " " + string(body)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case strings.Contains(statement, "INSERT INTO "+eventTable+" "):
		token := r.URL.Query().Get("insert_deduplication_token")
		insert := func() {
			for rows := wire.NewReader(bytes.NewReader(body)); rows.More() && !f.tokens[token]; {
				e := readEvent(rows)
				f.copies[e.row]++
			}
			f.tokens[token] = true
		}
		if !f.failed {
			f.failed, f.late = true, insert
			w.WriteHeader(http.StatusGatewayTimeout)
			return
		}
		insert()
	case strings.Contains(statement, "SELECT row FROM "):
		for row := range f.copies {
			_, _ = w.Write(appendInt(nil, row))
		}
	}
}

func (f *lateServer) arrive() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late()
}

// An insertion that was sent, and runs after it was repeated, stores no event twice: the
// repetition has the same rows and the same token, although more events wait by then.
func TestLateInsertion(t *testing.T) {
	for _, name := range []string{"another node", "the same node"} {
		t.Run(name, func(t *testing.T) {
			f := &lateServer{tokens: map[string]bool{}, copies: map[int64]int{}}
			server := httptest.NewServer(f)
			defer server.Close()
			d, cfg := dbtest.Postgres(t), events.DefaultConfig()
			cfg.URL = "clickhouse://" + strings.TrimPrefix(server.URL, "http://") + "/guidon"
			open := func() (*Store, *events.Service) {
				shared := events.NewShared(d)
				s, err := New(cfg, d, shared, zaptest.NewLogger(t))
				if err != nil {
					t.Fatal(err)
				}
				s.schema.checked, s.schema.version = true, [2]int{24, 8}
				s.OnStored(func() {})
				return s, events.NewOn(s, shared, cfg, d, zaptest.NewLogger(t), nil)
			}
			first, service := open()
			process(t, service, eventsOf("a", "b"), 2)
			process(t, service, eventsOf("c"), 1)
			if err := first.Flush(t.Context()); err == nil {
				t.Fatal("the insertion has not failed")
			}
			process(t, service, eventsOf("d"), 1)
			second := first
			if name == "another node" {
				second, _ = open()
			}
			if err := second.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.arrive()
			process(t, service, eventsOf("e"), 1)
			if err := second.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(f.copies) != 5 {
				t.Errorf("%d events are stored", len(f.copies))
			}
			for row, n := range f.copies {
				if n != 1 {
					t.Errorf("row %d is stored %d times", row, n)
				}
			}
		})
	}
}

// The events of an erasure that arrive after ClickHouse has deleted them are deleted again, and
// the erasure is forgotten then.
func TestLateEventsAreErasedAgain(t *testing.T) {
	s, _, f := mutating(t, "erased")
	f.set(func() { f.done[0], f.done[1] = true, true })
	if err := s.finishRecorded(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept := func() (n int) {
		if err := s.db.Read(t.Context()).NewRaw("SELECT count(*) FROM event_erasures").Scan(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := s.repeatErasures(t.Context()); err != nil || kept() != 1 {
		t.Errorf("%d erasures are kept for the time of a late insertion: %v", kept(), err)
	}
	s.repeatAfter = 0
	time.Sleep(time.Millisecond)
	f.set(func() { f.late = 3 })
	if err := s.repeatErasures(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, _ := f.counts(); n != 2 || kept() != 0 {
		t.Errorf("%d mutations, %d erasures are kept", n, kept())
	}
	if err := s.erased.Add(t.Context(), 1, []string{"other"}, 100); err != nil {
		t.Fatal(err)
	}
	f.set(func() { f.late, f.done[2] = 0, true })
	if err := s.finishRecorded(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.repeatErasures(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, _ := f.counts(); n != 3 || kept() != 0 {
		t.Errorf("without late events: %d mutations, %d erasures are kept", n, kept())
	}
}

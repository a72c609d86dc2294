package mutation

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// fakeServer has a table of mutations. onStart runs when one was added, onList before
// they are read.
type fakeServer struct {
	mu        sync.Mutex
	mutations []*fakeMutation
	onStart   func(m *fakeMutation)
	onList    func()
	old       bool // without the column latest_fail_reason
}

type fakeMutation struct {
	command, reason string
	done, gone      bool
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	statement := string(body)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case strings.HasPrefix(statement, "ALTER TABLE t DELETE WHERE (x = 1) AND 'guidon:"):
		m := &fakeMutation{command: statement}
		f.mutations = append(f.mutations, m)
		if f.onStart != nil {
			f.onStart(m)
		}
	case strings.Contains(statement, "FROM system.columns"):
		if !f.old {
			_, _ = w.Write(appendString(nil, "latest_fail_reason"))
		}
	case strings.Contains(statement, "FROM system.mutations") && strings.Contains(statement, "latest_fail_reason") != f.old:
		if f.onList != nil {
			f.onList()
		}
		_, rest, _ := strings.Cut(statement, "position(command, '")
		tag, _, _ := strings.Cut(rest, "'")
		for i, m := range f.mutations {
			var flags [16]byte // is_done, own
			if m.done {
				flags[0] = 1
			}
			if tag != "" && strings.Contains(m.command, tag) {
				flags[8] = 1
			}
			if !m.gone && (!m.done || flags[8] == 1) {
				_, _ = w.Write(append(appendString(appendString(nil, fmt.Sprint(i)), m.reason), flags[:]...))
			}
		}
	default:
		http.Error(w, "unexpected: "+statement, http.StatusInternalServerError)
	}
}

func newDeleter(t *testing.T, f *fakeServer) *Deleter {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	c, err := wire.New("clickhouse://" + strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return New(c, "t")
}

// finish ends mutations as ClickHouse does that has no trouble.
func finish(m *fakeMutation) { m.done = true }

func TestEachDeletionIsAMutation(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		f := &fakeServer{onStart: finish, old: old}
		d := newDeleter(t, f)
		for range 2 {
			if err := d.Delete(t.Context(), "k", "x = 1"); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := d.DeleteOnce(t.Context(), "once", "x = 1"); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(f.mutations); n != 3 {
			t.Errorf("%d mutations", n)
		}
	}
}

// expiring is a context that has passed its deadline when it is cancelled.
type expiring struct{ context.Context }

func (e expiring) Err() error {
	if e.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

func TestUnfinishedMutationIsAdopted(t *testing.T) {
	t.Parallel()
	ctx, expire := context.WithCancel(t.Context())
	f := &fakeServer{}
	f.onList = func() {
		if len(f.mutations) > 0 {
			expire() // the deleter waits for its mutation
		}
	}
	if err := newDeleter(t, f).Delete(expiring{ctx}, "k", "x = 1"); !errors.Is(err, ErrUnfinished) {
		t.Fatal(err)
	}

	// Another process reads the mutations before it would start one, and then while it waits.
	reads := 0
	f.mu.Lock()
	f.onList = func() {
		if reads++; reads == 3 {
			f.mutations[0].done = true
		}
	}
	f.mu.Unlock()
	if err := newDeleter(t, f).Delete(t.Context(), "k", "x = 1"); err != nil || len(f.mutations) != 1 || reads != 3 {
		t.Errorf("%d mutations, read %d times: %v", len(f.mutations), reads, err)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	fails := func(m *fakeMutation) { m.reason = "disk full" }
	for name, test := range map[string]struct {
		f    *fakeServer
		want string
	}{
		"its own":        {&fakeServer{onStart: fails}, "cannot delete events (mutation 0): disk full"},
		"the one before": {&fakeServer{mutations: []*fakeMutation{{command: "of an operator", reason: "no memory"}}}, "cannot delete events (mutation 0): no memory"},
		"killed":         {&fakeServer{onStart: func(m *fakeMutation) { m.gone = true }}, "was ended before it was done"},
		"one of others":  {&fakeServer{onStart: finish, mutations: []*fakeMutation{{command: "of an operator"}}}, ""},
	} {
		d := newDeleter(t, test.f)
		err := d.Delete(t.Context(), "k", "x = 1")
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if answer, ok := errors.AsType[*wire.Error](err); !ok || !answer.Reached || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Check(t.Context()); (err != nil) != strings.Contains(test.want, "cannot delete") {
			t.Errorf("%s: check: %v", name, err)
		}
	}
}

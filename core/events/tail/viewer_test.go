package tail

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/stream"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// opener opens one stream at /stream.
type opener func(*stream.Stream) func()

func (o opener) Routes(g *web.Router) {
	g.Public(fiber.MethodGet, "/stream", func(c *fiber.Ctx) error { return stream.Open(c.Context(), o) })
}

// dial opens the stream.
func (o opener) dial(t *testing.T) net.Conn {
	t.Helper()
	u, err := url.Parse(webtest.Serve(t, webtest.DefaultKeys(), o))
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	if _, err := fmt.Fprint(c, "GET /stream HTTP/1.1\r\nHost: a\r\nOrigin: https://a.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return c
}

// The credential is checked while the queue is not empty.
func TestCheckWhileTheQueueIsFull(t *testing.T) {
	t.Parallel()
	const chunks = 1000 // 64 MB: more than the buffers of the system
	v := &viewer{ended: make(chan struct{}), filled: make(chan struct{}, 1), check: func(context.Context) error {
		return fault.New(fault.Unauthenticated, "session_invalid", "The session has ended.")
	}}
	chunk := append(bytes.Repeat([]byte{'x'}, chunkBytes-1), '\n')
	for range chunks {
		v.say(chunk)
	}
	times := DefaultTimes()
	times.Check, times.Write = time.Millisecond, 2*time.Minute
	ran := make(chan struct{})
	c := opener(func(s *stream.Stream) func() {
		v.stream = s
		go func() { defer close(ran); v.run(context.Background(), times) }()
		return func() { close(v.ended) }
	}).dial(t)
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	<-ran
	if !bytes.Contains(got, []byte("event: end\ndata: {\"code\":\"session_invalid\"")) {
		t.Errorf("%d bytes without an end", len(got))
	}
	if v.mu.Lock(); len(v.queue) == 0 {
		t.Error("the stream ended only when the queue was empty")
	}
	v.mu.Unlock()
}

// spy is a store in which only other projects store events.
type spy struct {
	mu     sync.Mutex
	last   int64
	afters []int64 // of RecordsAfter
	ranges []int64 // rows of RowsBetween
	missed []events.Record
}

func (s *spy) Last(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last += 1000
	return s.last, nil
}

func (s *spy) RecordsAfter(_ context.Context, _, after int64, _ int) ([]events.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.afters = append(s.afters, after)
	return s.missed, nil
}

func (s *spy) RowsBetween(_ context.Context, _, after, through int64, _ int) ([]Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ranges = append(s.ranges, through-after)
	return nil, nil
}

func (s *spy) Record(context.Context, int64, string) (e events.Record, err error) { return e, err }

func (s *spy) AddPersons(context.Context, []events.Record, bool) error { return nil }

func (s *spy) CountBetween(context.Context, int64, int64, int64) (int64, error) { return 0, nil }

// A project without events does not read the rows of the others again.
func TestQuietProjectMovesOn(t *testing.T) {
	t.Parallel()
	source := &spy{last: 1_000_000}
	h := New(source, nil, 10, DefaultTimes(), nil, nil)
	v := &viewer{filter: newFilter(&events.Filter{}), resume: -1, filled: make(chan struct{}, 1)}
	top := &topic{project: 2, viewers: map[*viewer]struct{}{}, joining: []*viewer{v}, position: -1}
	for i := range 50 {
		if i == 40 { // as if all before were too long ago
			for n := range top.window.seen {
				top.window.seen[n].at = time.Now().Add(-2 * windowTime)
			}
			top.settled = time.Time{}
		}
		if _, err := h.poll(t.Context(), top); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i < len(source.afters); i++ {
		if source.afters[i] <= source.afters[i-1] {
			t.Fatalf("read %d reads behind row %d again", i, source.afters[i])
		}
	}
	if n := len(source.afters); n != 50 {
		t.Errorf("%d reads", n)
	}
	if last := source.ranges[len(source.ranges)-1]; last > 5000 {
		t.Errorf("a look at late rows reads %d rows", last)
	}
	if v.position != top.position {
		t.Errorf("the viewer is at %d, the topic at %d", v.position, top.position)
	}
	if want := fmt.Sprintf(":\nid: %d\n\n", top.position); string(v.next(nil)) == "" || string(v.heartbeat()) != want {
		t.Errorf("got %q, want %q", v.heartbeat(), want)
	}
}

// One project cannot take the places of all others.
func TestPlacesOfAProject(t *testing.T) {
	t.Parallel()
	for limit, half := range map[int]int{1: 1, 2: 1, 5: 3} {
		h := New(&spy{}, nil, limit, DefaultTimes(), nil, nil)
		var places []*Place
		for range half {
			p, err := h.Reserve(1)
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, p)
		}
		if _, err := h.Reserve(1); !fault.Is(err, fault.Throttled) {
			t.Errorf("one project has more than %d of %d places: %v", half, limit, err)
		}
		for range limit - half {
			if _, err := h.Reserve(2); err != nil {
				t.Errorf("another project, of %d places: %v", limit, err)
			}
		}
		if _, err := h.Reserve(3); !fault.Is(err, fault.Throttled) {
			t.Errorf("more than %d places: %v", limit, err)
		}
		places[0].Release()
		if _, err := h.Reserve(1); err != nil {
			t.Errorf("the place is not free again: %v", err)
		}
	}
}

// Relative dates of a filter move with the time.
func TestRelativeDatesMove(t *testing.T) {
	t.Parallel()
	items, err := propertyfilter.Compile(`[{"key":"at","value":"-1d","operator":"is_date_before"}]`, match.Options{Location: time.UTC}, events.EventProperty, events.PersonProperty)
	if err != nil {
		t.Fatal(err)
	}
	f := newFilter(&events.Filter{Properties: items})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := &events.Record{Properties: `{"at":"2026-03-01T11:00:00Z"}`}
	for after, want := range map[time.Duration]bool{0: false, 48 * time.Hour: true} {
		f.begin(now.Add(after))
		if got := f.matches(r); got != want {
			t.Errorf("after %s: %t", after, got)
		}
	}
}

// A client that reconnects gets all that it has missed, above the rate too.
func TestMissedEventsHaveNoRate(t *testing.T) {
	t.Parallel()
	const missed = 900
	source := &spy{missed: make([]events.Record, missed)}
	for i := range source.missed {
		source.missed[i].ID = int64(i + 1)
	}
	h := New(source, func(*events.Record) ([]byte, error) { return []byte("{}"), nil }, 10, DefaultTimes(), nil, nil)
	v := &viewer{filter: newFilter(&events.Filter{}), resume: 0, filled: make(chan struct{}, 1)}
	top := &topic{project: 1, viewers: map[*viewer]struct{}{}, joining: []*viewer{v}, position: missed}
	if err := h.join(t.Context(), top); err != nil {
		t.Fatal(err)
	}
	if n := len(v.queue); n != missed+1 || v.skipped != [reasons]int64{} {
		t.Errorf("%d messages, skipped %v", n, v.skipped)
	}
}

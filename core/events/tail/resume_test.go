package tail

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
)

// rowsStore is a store in which rows become visible late.
type rowsStore struct {
	spy

	rows    []events.Record
	err     error // of Record
	read    int   // bytes that RecordsAfter returned
	largest int   // bytes of one answer of it
}

func (s *rowsStore) Last(context.Context) (int64, error) { return 1000, nil }

func (s *rowsStore) RecordsAfter(_ context.Context, _, after int64, limit int) (out []events.Record, _ error) {
	size := 0
	for _, r := range s.rows {
		if r.ID > after && len(out) < limit {
			out = append(out, r)
			size += len(r.Properties)
		}
	}
	s.read += size
	s.largest = max(s.largest, size)
	return out, nil
}

func (s *rowsStore) RowsBetween(_ context.Context, _, after, through int64, limit int) (out []Row, _ error) {
	for _, r := range slices.Backward(s.rows) {
		if r.ID > after && r.ID <= through && len(out) < limit {
			out = append(out, Row{r.ID, r.UUID})
		}
	}
	return out, nil
}

func (s *rowsStore) Record(_ context.Context, _ int64, id string) (events.Record, error) {
	for _, r := range s.rows {
		if s.err == nil && r.UUID.String() == id {
			return r, nil
		}
	}
	return events.Record{}, s.err
}

// add stores an event in its place.
func (s *rowsStore) add(row int64, size int) {
	s.rows = append(s.rows, events.Record{ID: row, UUID: uuid.New(), Properties: strings.Repeat("x", size)})
	slices.SortFunc(s.rows, func(a, b events.Record) int { return int(a.ID - b.ID) })
}

func (s *rowsStore) hub() *Hub {
	return New(s, func(r *events.Record) ([]byte, error) { return []byte(`"` + r.UUID.String() + `"`), nil }, 10, DefaultTimes(), nil, nil)
}

// joined returns the viewer and its topic after the first poll.
func (s *rowsStore) joined(t *testing.T, h *Hub, resume int64) (*viewer, *topic) {
	t.Helper()
	v := &viewer{filter: newFilter(&events.Filter{}), resume: resume, filled: make(chan struct{}, 1), tokens: MaxRate, refill: time.Now()}
	top := &topic{project: 1, viewers: map[*viewer]struct{}{}, joining: []*viewer{v}, position: -1}
	if _, err := h.poll(t.Context(), top); err != nil {
		t.Fatal(err)
	}
	return v, top
}

func (v *viewer) got() string {
	var all []byte
	for b := v.next(nil); len(b) > 0; b = v.next(nil) {
		all = append(all, b...)
	}
	return string(all)
}

// A late row is offered after an error of the store; only a row that was deleted is left out.
func TestLateRowsAreTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		shown bool
	}{"error of the store": {errors.New("connection reset"), true}, "deleted": {fault.New(fault.NotFound, "not_found", "Not found."), false}} {
		s := &rowsStore{}
		h := s.hub()
		v, top := s.joined(t, h, -1)
		s.add(995, 1)
		s.err, top.settled = c.err, time.Time{}
		if _, err := h.poll(t.Context(), top); (err != nil) != c.shown {
			t.Errorf("%s: the poll returns %v", name, err)
		}
		s.err, top.settled = nil, time.Time{}
		if _, err := h.poll(t.Context(), top); err != nil {
			t.Fatal(err)
		}
		if got := v.got(); strings.Contains(got, s.rows[0].UUID.String()) != c.shown {
			t.Errorf("%s: the viewer got %q", name, got)
		}
	}
}

// A row that becomes visible behind the position of a client while it is away is sent when it
// reconnects, after what it has missed and without a position behind it.
func TestRowThatWasLateWhileAway(t *testing.T) {
	t.Parallel()
	for _, resume := range []int64{1000, 998} {
		s := &rowsStore{}
		s.add(995, 1)
		s.add(999, 1)
		v, _ := s.joined(t, s.hub(), resume)
		got := v.got()
		late, missed := strings.Index(got, s.rows[0].UUID.String()), strings.Index(got, s.rows[1].UUID.String())
		if late < 0 || missed < 0 || resume == 998 && late < missed || !strings.Contains(got[:late], "id: 1000\n") || strings.Contains(got, "reset") {
			t.Errorf("position %d: %q", resume, got)
		}
	}
}

// Rows before the position of a client are sent again up to a bound, and do not count as missed.
func TestRepeatedRowsAreBounded(t *testing.T) {
	t.Parallel()
	s := &rowsStore{}
	for row := range int64(1000) {
		s.add(row+1, 1)
	}
	v, _ := s.joined(t, s.hub(), 990)
	if got := v.got(); strings.Count(got, "event: event") != repeatRows+10 || strings.Contains(got, "reset") {
		t.Errorf("%d events", strings.Count(got, "event: event"))
	}
}

// What a client has missed is read in pages that follow the size of events, up to pageBytes.
func TestMissedLargeEventsAreReset(t *testing.T) {
	t.Parallel()
	s := &rowsStore{}
	for row := range int64(500) {
		s.add(row+1, 1<<20)
	}
	v, _ := s.joined(t, s.hub(), 0)
	if got := v.got(); !strings.Contains(got, "event: reset") || strings.Contains(got, "event: event") {
		t.Errorf("got %.200q", got)
	}
	if s.read > 3*pageBytes || s.largest > 2*pageBytes {
		t.Errorf("%d bytes are read, %d at once", s.read, s.largest)
	}
}

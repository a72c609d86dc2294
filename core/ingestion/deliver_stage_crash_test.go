package ingestion_test

import (
	"slices"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/sdk"
)

// crash opens the sink again: what is staged is lost. It is called by write.
func (s *stager) crash() (sdk.WriteResult, error) {
	s.session++
	s.held = nil
	return sdk.WriteResult{}, &sdk.Error{Class: sdk.ClassTransient, Code: "plugin_unavailable", Message: "the process ended"}
}

func TestDeliverStagedOverCrashes(t *testing.T) {
	t.Parallel()
	t.Run("keeps the order", func(t *testing.T) {
		t.Parallel()
		d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
		s := newStager()
		write, crashed := s.write, false
		s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
			if slices.Contains(eventNames(b), "c") && !crashed {
				crashed = true
				return s.crash()
			}
			return write(b)
		}
		accept(t, j, "a", "b", "c", "d")
		del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
		eventually(t, "the last event", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Contains(append(slices.Clone(s.kept), s.held...), "d")
		})
		stopDeliver(t, del)
		if got := s.has(); got != "a b c d" {
			t.Errorf("the sink has %q", got)
		}
	})
	t.Run("finds the event behind staged ones that crashes the sink", func(t *testing.T) {
		t.Parallel()
		d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
		s := newStager()
		s.props.MaxEvents, s.props.MaxStagedEvents = 4, 8
		write := s.write
		s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
			if slices.Contains(eventNames(b), "crash") {
				return s.crash()
			}
			return write(b)
		}
		accept(t, j, "a", "b", "c", "d", "e", "f", "crash", "g", "h", "i", "j", "k")
		del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
		eventually(t, "the dead letter", func() bool { return letters(t, d) == "crash" })
		eventually(t, "the events behind it", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Contains(append(slices.Clone(s.kept), s.held...), "k")
		})
		stopDeliver(t, del)
		if got := s.has(); got != "a b c d e f g h i j k" || letters(t, d) != "crash" {
			t.Errorf("the sink has %q, dead letters %q", got, letters(t, d))
		}
	})
}

// A flush settles the records that were staged, and no others.
func TestDeliverStagedPartly(t *testing.T) {
	t.Parallel()
	t.Run("a stop in the middle of a batch does not settle its rest", func(t *testing.T) {
		t.Parallel()
		d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
		s := newStager()
		s.props.MaxEvents, s.props.MaxStagedEvents = 4, 100
		write, refused := s.write, 0
		s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
			switch names := eventNames(b); {
			case len(names) == 4:
				return rejects(sdk.ClassPermanent)(b)
			case names[0] == "c":
				refused++
				return rejects(sdk.ClassTransient)(b)
			}
			return write(b)
		}
		accept(t, j, "x")
		del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
		eventually(t, "the first event is staged", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.held) == 1 })
		accept(t, j, "a", "b", "c", "d")
		eventually(t, "half of the batch is staged", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return refused > 1 })
		stopDeliver(t, del)
		if at := committed(t, j, "sink/stager"); at.Count != 1 {
			t.Errorf("the cursor is behind %d events, of which the last were never staged", at.Count)
		}
	})
	t.Run("a sink may report the last record that it has staged", func(t *testing.T) {
		t.Parallel()
		d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
		s := newStager()
		s.props.MaxStagedEvents = 1
		staged := uint64(0)
		s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
			if slices.Contains(eventNames(b), "bad") {
				return rejects(sdk.ClassPermanent)(b)
			}
			s.held, staged = append(s.held, eventNames(b)...), b.LastSeq
			return b.Staged(0), nil
		}
		s.flush = func(uint64) (sdk.FlushResult, error) {
			s.kept, s.held = append(s.kept, s.held...), nil
			return sdk.FlushResult{CommittedThrough: staged}, nil
		}
		accept(t, j, "a", "bad")
		startDeliver(t, deliverConfig(), j, d, newSinks(s))
		eventually(t, "the cursor", func() bool { return committed(t, j, "sink/stager").Count == 2 })
		if got := s.has(); got != "a" || letters(t, d) != "bad" {
			t.Errorf("the sink has %q, dead letters %q", got, letters(t, d))
		}
	})
}

package ingestion_test

import (
	"errors"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/sdk"
)

// stager is a sink that stages events until a flush, and loses them when it is opened
// again.
type stager struct {
	fakeSink
	session uint64
	held    []string
	through uint64
}

func (s *stager) Session() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

func newStager() *stager {
	s := &stager{session: 1}
	s.name, s.props = "stager", sdk.SinkProperties{MaxEvents: 2, Commit: sdk.CommitOnFlush, MaxStagedEvents: 4, MaxStagedAge: time.Hour}
	s.write = func(b *sdk.Batch) (sdk.WriteResult, error) {
		s.held = append(s.held, eventNames(b)...)
		return b.Staged(s.through), nil
	}
	s.flush = func(upTo uint64) (sdk.FlushResult, error) {
		s.kept, s.held, s.through = append(s.kept, s.held...), nil, upTo
		return sdk.FlushResult{CommittedThrough: upTo}, nil
	}
	return s
}

func TestDeliverStaged(t *testing.T) {
	t.Parallel()
	t.Run("is not safe before it was flushed", func(t *testing.T) {
		t.Parallel()
		d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
		s := newStager()
		accept(t, j, "a", "b", "c")
		del := startDeliver(t, deliverConfig(), j, d, newSinks(s))
		eventually(t, "it is staged", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.held) == 3 })
		if at := committed(t, j, "sink/stager"); at.Count != 0 {
			t.Errorf("committed %+v", at)
		}
		accept(t, j, "d", "e")
		eventually(t, "enough is staged", func() bool { return s.has() == "a b c d e" || s.has() == "a b c d" })
		eventually(t, "the cursor", func() bool { return committed(t, j, "sink/stager").Count >= 4 })
		stopDeliver(t, del)
		if s.has() != "a b c d e" || committed(t, j, "sink/stager").Count != 5 {
			t.Errorf("after the stop: %q", s.has())
		}
	})
	t.Run("is sent again when the session is lost", func(t *testing.T) {
		t.Parallel()
		d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
		s := newStager()
		accept(t, j, "a", "b", "c")
		startDeliver(t, deliverConfig(), j, d, newSinks(s))
		eventually(t, "it is staged", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.held) == 3 })
		s.mu.Lock()
		s.session, s.held = 2, nil
		s.mu.Unlock()
		accept(t, j, "d")
		eventually(t, "everything", func() bool { return s.has() == "a b c d" })
	})
	t.Run("does not stay staged with a sink that does not tell its sessions", func(t *testing.T) {
		t.Parallel()
		d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
		s := newStager()
		accept(t, j, "a", "b", "c")
		startDeliver(t, deliverConfig(), j, d, newSinks(&s.fakeSink))
		eventually(t, "everything", func() bool { return s.has() == "a b c" && committed(t, j, "sink/stager").Count == 3 })
	})
	t.Run("records the flush refuses are set aside", func(t *testing.T) {
		t.Parallel()
		d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
		s := newStager()
		s.flush = func(upTo uint64) (sdk.FlushResult, error) {
			bad := sdk.FlushFailure{Seq: 3, Err: &sdk.Error{Class: sdk.ClassPermanent, Code: "bad", Message: "bad"}}
			return sdk.FlushResult{CommittedThrough: upTo, Failures: []sdk.FlushFailure{bad}}, nil
		}
		accept(t, j, "a", "b", "c", "d")
		startDeliver(t, deliverConfig(), j, d, newSinks(s))
		eventually(t, "the cursor", func() bool { return committed(t, j, "sink/stager").Count == 4 })
		if letters(t, d) != "c" {
			t.Errorf("dead letters %q", letters(t, d))
		}
	})
	t.Run("a flush that fails is no success", func(t *testing.T) {
		t.Parallel()
		d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
		s := newStager()
		flushes, fine := 0, s.flush
		s.flush = func(upTo uint64) (sdk.FlushResult, error) {
			if flushes++; flushes < 3 {
				s.held = nil
				return sdk.FlushResult{}, errors.New("disk full")
			}
			return fine(upTo)
		}
		accept(t, j, "a", "b", "c", "d")
		startDeliver(t, deliverConfig(), j, d, newSinks(s))
		eventually(t, "everything", func() bool { return s.has() == "a b c d" })
	})
}

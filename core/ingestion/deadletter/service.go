package deadletter

import (
	"context"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/retry"
)

// Service lists, edits, replays and deletes dead letters. It needs only the
// database, so the command line uses it too, beside a running server or without
// one. It requests replays; the Replayer of a server carries them out.
type Service struct {
	store  *Store
	limits event.Limits
	wake   func()
}

// NewService returns the dead letters of a database. limits bound an edited
// event. wake wakes the Replayer of the same process and may be nil.
func NewService(d *db.DB, limits event.Limits, wake func()) *Service {
	if wake == nil {
		wake = func() {}
	}
	return &Service{NewStore(d), limits, wake}
}

// stepSize bounds the dead letters that one statement touches, so that other
// transactions run in between.
const stepSize = 500

// Limits of an answer: the dead letters that a dry run shows, and the failures
// that a replay lists.
const (
	sampleSize = 10
	maxFailed  = 100
)

// List returns a page of the dead letters of a project, newest first, and how
// many there are.
func (s *Service) List(ctx context.Context, projectID int64, f Filter, limit, offset int) ([]Entry, int, error) {
	return s.store.list(ctx, projectID, f, limit, offset)
}

// Get returns one dead letter, or NotFound.
func (s *Service) Get(ctx context.Context, projectID, id int64) (Entry, error) {
	return s.store.get(ctx, projectID, id)
}

// Edit changes the event of a dead letter and returns the changed dead letter.
// patch is a JSON object with the fields of the event to change; amend lists the
// fields it may hold. Edit fails with Invalid and the field's name, with Conflict when the
// dead letter holds no event or was changed in the meantime, or with NotFound.
func (s *Service) Edit(ctx context.Context, projectID, id int64, patch []byte) (Entry, error) {
	l, err := s.store.get(ctx, projectID, id)
	if err != nil {
		return l, err
	}
	old := l.Payload
	ev, err := l.Decode()
	if err != nil {
		return l, err
	}
	if err := amend(s.limits, &ev, patch); err != nil {
		return l, err
	}
	l.Event, l.DistinctID, l.Payload = ev.Name, ev.DistinctID, ev.AppendJSON(nil)
	return l, s.store.edit(ctx, &l, old)
}

// Selection describes the dead letters that a filter selects.
type Selection struct {
	DryRun  bool           `json:"dry_run"`
	Matched int            `json:"matched"`
	Sources map[string]int `json:"sources"` // of those matched
	Sample  []Entry        `json:"sample"`  // of a dry run: the newest few
}

// ReplayResult is the state of a replay.
type ReplayResult struct {
	Selection
	Replayed int             `json:"replayed"`
	Failed   int             `json:"failed"`
	Waiting  int             `json:"waiting"`  // not settled yet
	Failures []ReplayFailure `json:"failures"` // the first of them
}

// ReplayFailure is a dead letter whose replay failed.
type ReplayFailure struct {
	ID    int64  `json:"id"`
	Error string `json:"error"`
}

// DeleteResult is the outcome of Delete.
type DeleteResult struct {
	Selection
	Deleted int `json:"deleted"`
}

// selection counts the dead letters that a filter selects.
func (s *Service) selection(ctx context.Context, projectID int64, f Filter, dryRun bool) (out Selection, err error) {
	out = Selection{DryRun: dryRun, Sample: []Entry{}}
	if out.Sources, err = s.store.countBySource(ctx, projectID, f); err != nil {
		return out, err
	}
	for _, n := range out.Sources {
		out.Matched += n
	}
	if dryRun {
		out.Sample, _, err = s.store.list(ctx, projectID, f, sampleSize, 0)
	}
	return out, err
}

// each calls do with the ids of the dead letters that the filter selects now,
// oldest first, in small steps.
func (s *Service) each(ctx context.Context, projectID int64, f Filter, do func(ids []int64) error) error {
	newest, _, err := s.store.list(ctx, projectID, f, 1, 0)
	if err != nil || len(newest) == 0 {
		return err
	}
	last := newest[0].ID
	for after := int64(0); after < last; {
		ids, err := s.store.ids(ctx, projectID, f, after, stepSize)
		if err != nil || len(ids) == 0 {
			return err
		}
		after = ids[len(ids)-1]
		ids = slices.DeleteFunc(ids, func(id int64) bool { return id > last })
		if len(ids) == 0 {
			return nil
		}
		if err := do(ids); err != nil {
			return err
		}
	}
	return nil
}

// Discard deletes one dead letter, or fails with NotFound.
func (s *Service) Discard(ctx context.Context, projectID, id int64) error {
	n, err := s.store.delete(ctx, projectID, id)
	if err == nil && n == 0 {
		return errNotFound
	}
	return err
}

// Delete deletes the dead letters that the filter selects. A dry run deletes
// none.
func (s *Service) Delete(ctx context.Context, projectID int64, f Filter, dryRun bool) (DeleteResult, error) {
	sel, err := s.selection(ctx, projectID, f, dryRun)
	out := DeleteResult{Selection: sel}
	if err != nil || dryRun {
		return out, err
	}
	return out, s.each(ctx, projectID, f, func(ids []int64) error {
		n, err := s.store.delete(ctx, projectID, ids...)
		out.Deleted += n
		return err
	})
}

// Replay requests a replay of the dead letters that the filter selects, each to
// its source, and waits that long for a server to settle them; the rest is
// settled later. A dry run requests none.
func (s *Service) Replay(ctx context.Context, projectID int64, f Filter, dryRun bool, wait time.Duration) (ReplayResult, error) {
	sel, err := s.selection(ctx, projectID, f, dryRun)
	out := ReplayResult{Selection: sel, Failures: []ReplayFailure{}}
	if err != nil || dryRun {
		return out, err
	}
	at, requested := time.Now(), 0
	err = s.each(ctx, projectID, f, func(ids []int64) error {
		n, err := s.store.requestReplay(ctx, projectID, ids, at)
		requested += n
		return err
	})
	if err != nil {
		return out, err
	}
	s.wake()
	return out, s.waitSettled(ctx, projectID, at, requested, wait, &out)
}

// waitSettled polls a replay until it is settled or the time is over.
func (s *Service) waitSettled(ctx context.Context, projectID int64, at time.Time, requested int, wait time.Duration, out *ReplayResult) error {
	ctx, cancel := context.WithTimeout(ctx, max(wait, 0)+5*time.Second) // for the database
	defer cancel()
	pause := 5 * time.Millisecond
	for deadline := time.Now().Add(wait); ; pause = min(2*pause, 250*time.Millisecond) {
		waiting, failed, failures, err := s.store.replayOutcome(ctx, projectID, at, maxFailed)
		if err != nil {
			return err
		}
		out.Failed, out.Failures, out.Replayed = failed, failures, max(requested-waiting-failed, 0)
		out.Waiting = max(out.Matched-requested, 0) + waiting
		if waiting == 0 || time.Now().After(deadline) || !retry.Sleep(ctx, pause) {
			return nil
		}
	}
}

// Expire deletes the dead letters whose latest failure is before then, in small
// steps with a pause between them. Those that wait for a replay stay.
func (s *Service) Expire(ctx context.Context, then time.Time) error {
	for {
		n, err := s.store.expire(ctx, then, stepSize)
		if err != nil || n < stepSize {
			return err
		}
		if !retry.Sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}

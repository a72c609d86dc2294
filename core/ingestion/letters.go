package ingestion

import (
	"context"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/ingestion/event"
)

// Letters is what people do with dead letters: look, mend, send again, throw
// away. It needs only the database, so the command line has it too, beside a
// running server or without one; a replay is asked for here and done by the
// Replayer of a server.
type Letters struct {
	store  *store
	limits event.Limits
	wake   func()
}

// NewLetters returns the dead letters of a database. limits bound what an
// event can be edited to; wake tells a Replayer of the same process that there
// is something to do, and may be nil.
func NewLetters(d *db.DB, limits event.Limits, wake func()) *Letters {
	if wake == nil {
		wake = func() {}
	}
	return &Letters{&store{d}, limits, wake}
}

// letterStep is how many dead letters one statement touches, so that the
// database is free in between.
const letterStep = 500

// sampleSize is how many dead letters a dry run shows, and how many failures
// an answer lists.
const (
	sampleSize = 10
	maxFailed  = 100
)

// List returns a page of the dead letters of a project, newest first, and how
// many there are.
func (s *Letters) List(ctx context.Context, projectID int64, f LetterFilter, limit, offset int) ([]DeadLetter, int, error) {
	return s.store.letters(ctx, projectID, f, limit, offset)
}

// Get returns one dead letter, or NotFound.
func (s *Letters) Get(ctx context.Context, projectID, id int64) (DeadLetter, error) {
	return s.store.letter(ctx, projectID, id)
}

// Edit changes the event of a dead letter and returns what it is then. patch is
// a JSON object with the fields of the event to change; see amend for what it
// may hold. It fails with Invalid and the field's name, with Conflict when the
// dead letter holds no event or was changed meanwhile, or with NotFound.
func (s *Letters) Edit(ctx context.Context, projectID, id int64, patch []byte) (DeadLetter, error) {
	l, err := s.store.letter(ctx, projectID, id)
	if err != nil {
		return l, err
	}
	old := l.Payload
	ev, err := l.event()
	if err != nil {
		return l, err
	}
	if err := amend(s.limits, &ev, patch); err != nil {
		return l, err
	}
	l.Event, l.DistinctID, l.Payload = ev.Name, ev.DistinctID, ev.AppendJSON(nil)
	return l, s.store.editLetter(ctx, &l, old)
}

// Selected says what a filter let through, and what a dry run would touch.
type Selected struct {
	DryRun  bool           `json:"dry_run"`
	Matched int            `json:"matched"`
	Sources map[string]int `json:"sources"` // of those matched
	Sample  []DeadLetter   `json:"sample"`  // of a dry run: the newest few
}

// Replayed says what became of a replay so far.
type Replayed struct {
	Selected
	Replayed int             `json:"replayed"`
	Failed   int             `json:"failed"`
	Waiting  int             `json:"waiting"`  // not settled when the answer was given
	Failures []ReplayFailure `json:"failures"` // the first of them
}

// ReplayFailure is a dead letter that failed again.
type ReplayFailure struct {
	ID    int64  `json:"id"`
	Error string `json:"error"`
}

// Deleted says what was thrown away.
type Deleted struct {
	Selected
	Deleted int `json:"deleted"`
}

// selected counts what a filter lets through.
func (s *Letters) selected(ctx context.Context, projectID int64, f LetterFilter, dryRun bool) (out Selected, err error) {
	out = Selected{DryRun: dryRun, Sample: []DeadLetter{}}
	if out.Sources, err = s.store.countLetters(ctx, projectID, f); err != nil {
		return out, err
	}
	for _, n := range out.Sources {
		out.Matched += n
	}
	if dryRun {
		out.Sample, _, err = s.store.letters(ctx, projectID, f, sampleSize, 0)
	}
	return out, err
}

// each calls do with the ids of the dead letters that pass the filter, oldest
// first, in small steps, up to those there are now.
func (s *Letters) each(ctx context.Context, projectID int64, f LetterFilter, do func(ids []int64) error) error {
	newest, _, err := s.store.letters(ctx, projectID, f, 1, 0)
	if err != nil || len(newest) == 0 {
		return err
	}
	last := newest[0].ID
	for after := int64(0); after < last; {
		ids, err := s.store.letterIDs(ctx, projectID, f, after, letterStep)
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

// Discard throws one dead letter away, or fails with NotFound.
func (s *Letters) Discard(ctx context.Context, projectID, id int64) error {
	n, err := s.store.dropLetters(ctx, projectID, id)
	if err == nil && n == 0 {
		return errNoLetter
	}
	return err
}

// Delete throws the dead letters away that pass the filter. A dry run only
// says which.
func (s *Letters) Delete(ctx context.Context, projectID int64, f LetterFilter, dryRun bool) (Deleted, error) {
	sel, err := s.selected(ctx, projectID, f, dryRun)
	out := Deleted{Selected: sel}
	if err != nil || dryRun {
		return out, err
	}
	return out, s.each(ctx, projectID, f, func(ids []int64) error {
		n, err := s.store.dropLetters(ctx, projectID, ids...)
		out.Deleted += n
		return err
	})
}

// Replay asks for the dead letters that pass the filter to be sent again, each
// to where it could not go before, and waits a while for a server to do it;
// what is then still waiting is done later. A dry run only says which.
func (s *Letters) Replay(ctx context.Context, projectID int64, f LetterFilter, dryRun bool, wait time.Duration) (Replayed, error) {
	sel, err := s.selected(ctx, projectID, f, dryRun)
	out := Replayed{Selected: sel, Failures: []ReplayFailure{}}
	if err != nil || dryRun {
		return out, err
	}
	at, asked := time.Now(), 0
	err = s.each(ctx, projectID, f, func(ids []int64) error {
		n, err := s.store.requestReplay(ctx, projectID, ids, at)
		asked += n
		return err
	})
	if err != nil {
		return out, err
	}
	s.wake()
	return out, s.await(ctx, projectID, at, asked, wait, &out)
}

// await follows a replay until all of it is settled or the time is over.
func (s *Letters) await(ctx context.Context, projectID int64, at time.Time, asked int, wait time.Duration, out *Replayed) error {
	ctx, cancel := context.WithTimeout(ctx, max(wait, 0)+5*time.Second) // for the database
	defer cancel()
	pause := 5 * time.Millisecond
	for deadline := time.Now().Add(wait); ; pause = min(2*pause, 250*time.Millisecond) {
		waiting, failed, failures, err := s.store.replayOutcome(ctx, projectID, at, maxFailed)
		if err != nil {
			return err
		}
		out.Failed, out.Failures, out.Replayed = failed, failures, max(asked-waiting-failed, 0)
		out.Waiting = max(out.Matched-asked, 0) + waiting
		if waiting == 0 || time.Now().After(deadline) || !sleep(ctx, pause) {
			return nil
		}
	}
}

// ExpireDeadLetters removes the dead letters that last failed before then, in
// small steps with a pause between them. What is to be sent again stays.
func (w *Worker) ExpireDeadLetters(ctx context.Context, then time.Time) error {
	for {
		n, err := w.store.expireLetters(ctx, then, letterStep)
		if err != nil || n < letterStep {
			return err
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}

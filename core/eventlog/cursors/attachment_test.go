package cursors_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/eventlog/cursors"
)

// TestAttachment checks that a log which was replaced refuses the first append of a process
// that was stopped, before its next look at the database.
func TestAttachment(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, _ *db.DB, s *cursors.Store) {
		agree := func(context.Context) error { return nil }
		must(t, s.Attach(t.Context(), "log", 3, nil))
		a := s.Attachment("log", 3, zap.NewNop())
		must(t, a.Check(time.Now()))
		must(t, s.Attach(t.Context(), "log", 5, agree))
		must(t, a.Check(time.Now())) // Watch, which does not run here, would notice
		continued := time.Now().Add(6 * time.Second)
		var appends sync.WaitGroup
		for range 20 {
			appends.Go(func() {
				if err := a.Check(continued); err == nil {
					t.Error("an append is accepted")
				}
			})
		}
		appends.Wait()
		wantCode(t, a.Check(time.Now()), "log_replaced")
		must(t, s.Attach(t.Context(), "log", 3, agree)) // back again
		must(t, a.Check(time.Now().Add(12*time.Second)))
		must(t, s.Attach(t.Context(), "other", 3, agree))
		wantCode(t, a.Check(time.Now().Add(18*time.Second)), "log_replaced")
	})
}

// TestAttachmentWithoutDatabase checks that a process that was stopped appends nothing
// until it could ask, and that one which was not stopped goes on.
func TestAttachmentWithoutDatabase(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, d *db.DB, s *cursors.Store) {
		must(t, s.Attach(t.Context(), "log", 3, nil))
		a := s.Attachment("log", 3, zap.NewNop())
		must(t, d.Close())
		must(t, a.Check(time.Now()))
		wantCode(t, a.Check(time.Now().Add(6*time.Second)), "log_unconfirmed")
		wantCode(t, a.Check(time.Now().Add(6*time.Second)), "log_unconfirmed")
		must(t, a.Check(time.Now()))
	})
}

// TestAttachmentWatch checks that a change is noticed without an append, and its end too.
func TestAttachmentWatch(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, _ *db.DB, s *cursors.Store) {
		agree := func(context.Context) error { return nil }
		must(t, s.Attach(t.Context(), "log", 3, nil))
		a := s.Attachment("log", 3, zap.NewNop())
		ctx, cancel := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() { a.Watch(ctx) })
		defer watch.Wait()
		defer cancel()
		wait := func(replaced bool) {
			t.Helper()
			for end := time.Now().Add(time.Minute); (a.Err() != nil) != replaced; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("not noticed; replaced: %v", replaced)
				}
			}
		}
		must(t, s.Attach(t.Context(), "log", 5, agree))
		wait(true)
		must(t, s.Attach(t.Context(), "log", 3, agree))
		wait(false)
	})
}

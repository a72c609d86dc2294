package ingestion

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// skipPause is how long a cursor rests while its reader meets only what it does
// not want.
const skipPause = time.Second

// gathering is how a reader fills a run.
type gathering struct {
	most, bytes int
	idle        func(*run) bool // nothing in it is to be done
	pause       *backoff        // after a failure to read
	log         *zap.Logger
}

// gather waits until the journal has something that is wanted and puts it into
// r, or until the cursor has rested long enough over what is not. It returns
// false when ctx ends.
func (f *feed) gather(ctx context.Context, r *run, g gathering) bool {
	var until time.Time // when to move on with nothing to do; zero for never
	for {
		_, err := f.fill(ctx, r, g.most, g.bytes)
		if !g.idle(r) || !until.IsZero() && !time.Now().Before(until) {
			return ctx.Err() == nil
		}
		if !r.empty() && until.IsZero() {
			until = time.Now().Add(skipPause)
		}
		if err == nil {
			err = f.waitUntil(ctx, until)
		}
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			g.pause.reset()
		default:
			g.log.Warn("cannot read the journal", zap.Error(err))
			sleep(ctx, g.pause.pause())
		}
	}
}

// waitUntil waits for more, at most until then; the zero time waits for ever.
func (f *feed) waitUntil(ctx context.Context, until time.Time) error {
	if until.IsZero() {
		return f.wait(ctx)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if err := f.wait(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

package ingestion

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal"
)

// commitPause is the pause between two commits of a reader's cursor. What is
// not committed yet is read again after a crash: the worker knows better from
// the database, a sink is sent a little twice.
const commitPause = 100 * time.Millisecond

// committer tells the journal how far a reader has come, without making the
// reader wait for it.
type committer struct {
	log    Log
	reader string
	logger *zap.Logger

	mu      sync.Mutex
	wanted  journal.Position
	done    journal.Position
	changed chan struct{} // holds one token when wanted moved
}

func newCommitter(log Log, reader string, at journal.Position, logger *zap.Logger) *committer {
	return &committer{log: log, reader: reader, logger: logger, wanted: at, done: at, changed: make(chan struct{}, 1)}
}

// to asks for the cursor to be moved to p, soon.
func (c *committer) to(p journal.Position) {
	c.mu.Lock()
	c.wanted = p
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// run commits until ctx ends.
func (c *committer) run(ctx context.Context) {
	for {
		select {
		case <-c.changed:
		case <-ctx.Done():
			return
		}
		if err := c.flush(ctx); err != nil && ctx.Err() == nil {
			c.logger.Warn("cannot move the cursor of a reader", zap.String("reader", c.reader), zap.Error(err))
			c.to(c.position())
		}
		if !sleep(ctx, commitPause) {
			return
		}
	}
}

func (c *committer) position() journal.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted
}

// flush commits now what was asked for.
func (c *committer) flush(ctx context.Context) error {
	p := c.position()
	if !c.done.Before(p) {
		return nil // nothing new, or a reader that reads again what it had read
	}
	if err := c.log.Commit(ctx, c.reader, p); err != nil {
		return err
	}
	c.done = p
	return nil
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

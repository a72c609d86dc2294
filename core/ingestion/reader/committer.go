package reader

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/retry"
)

// commitInterval is the pause between two commits of a cursor. After a crash
// events behind the committed cursor are read again: the pipeline has its cursor
// in the database, a sink receives some events twice.
const commitInterval = 100 * time.Millisecond

// LeasedCommitInterval is that of a cursor under a lease, which is a row in the database:
// a commit is a transaction. The next owner of a partition sends to sinks again what was
// sent since the last one.
const LeasedCommitInterval = time.Second

// Committer commits the cursor of a reader to the journal in the background.
type Committer struct {
	log    Log
	reader string
	logger *zap.Logger
	pause  time.Duration // between two commits

	mu        sync.Mutex
	target    journal.Position
	committed journal.Position
	changed   chan struct{} // holds one token when target moved
}

// NewCommitter returns a committer whose cursor is at that position.
func NewCommitter(log Log, reader string, at journal.Position, logger *zap.Logger) *Committer {
	return &Committer{log: log, reader: reader, logger: logger, pause: commitInterval, target: at, committed: at, changed: make(chan struct{}, 1)}
}

// Pause sets the pause between two commits, before Run.
func (c *Committer) Pause(d time.Duration) { c.pause = d }

// MoveTo sets the position that Run commits next. It does not block.
func (c *Committer) MoveTo(p journal.Position) {
	c.mu.Lock()
	c.target = p
	c.mu.Unlock()
	c.signal()
}

// signal makes Run commit the position that was set last.
func (c *Committer) signal() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// Run commits until ctx ends.
func (c *Committer) Run(ctx context.Context) {
	for {
		select {
		case <-c.changed:
		case <-ctx.Done():
			return
		}
		if err := c.Flush(ctx); err != nil && ctx.Err() == nil {
			c.logger.Warn("cursor commit failed", zap.String("reader", c.reader), zap.Error(err))
			c.signal()
		}
		if !retry.Sleep(ctx, c.pause) {
			return
		}
	}
}

// Position returns the position that was set last.
func (c *Committer) Position() journal.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.target
}

// Flush commits the position that was set last. A position behind the committed
// one, of a reader that reads again, is not committed. Flush and Run must not
// run at the same time.
func (c *Committer) Flush(ctx context.Context) error {
	p := c.Position()
	if !c.committed.Before(p) {
		return nil
	}
	if err := c.log.Commit(ctx, c.reader, p); err != nil {
		return err
	}
	c.committed = p
	return nil
}

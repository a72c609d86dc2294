package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// ErrFenced is the error of a transaction whose cursor in the database is no longer
// the one that its reader has read or written last. Nothing of the transaction is
// kept. Another owner has taken the partition over, or the database was restored.
var ErrFenced = fault.New(fault.Conflict, "cursor_moved", "The cursor in the database was moved by another owner.")

// readerCursor is the cursor of one reader in the database, with what this process
// knows of its row. A save succeeds only while the row is the known one: the lease,
// the journal and the position at which the batch began. It is for one goroutine.
type readerCursor struct {
	store   *store
	name    string
	lease   int64 // 0: of a journal that only this node reads
	timeout time.Duration

	row    cursor
	exists bool
}

// open reads the row, and takes it over if the reader has a lease. The result is
// false if the reader has committed nothing before. It fails with ErrFenced if the
// lease has ended.
func (c *readerCursor) open(ctx context.Context) (cursor, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var err error
	if c.lease == 0 {
		c.row, c.exists, err = c.store.loadCursor(ctx, c.name)
	} else {
		c.row, err = c.store.takeOver(ctx, c.name, c.lease)
		c.exists = err == nil
	}
	return c.row, c.exists && c.row.stored(), err
}

// save writes the position in the transaction of ctx. It fails with ErrFenced.
func (c *readerCursor) save(ctx context.Context, to cursor) error {
	to.lease = c.row.lease
	return c.store.saveCursor(ctx, c.name, c.row, c.exists, to)
}

// committed notes that the transaction of save has committed.
func (c *readerCursor) committed(to cursor) {
	to.lease = c.row.lease
	c.row, c.exists = to, true
}

// isCommitted reports, after a transaction failed with ErrFenced, whether an earlier
// attempt has committed the position although its commit failed: the connection was
// lost meanwhile. It fails with ErrFenced if the lease has ended.
func (c *readerCursor) isCommitted(ctx context.Context, to cursor) (bool, error) {
	row, stored, err := c.open(ctx)
	return err == nil && stored && row.journal == to.journal && row.position == to.position, err
}

// cursorAt returns the cursor of a position in a journal.
func cursorAt(journalID string, p journal.Position) cursor {
	return cursor{journal: journalID, position: p}
}

func isFenced(err error) bool { return errors.Is(err, ErrFenced) }

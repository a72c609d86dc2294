package erasure

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/retry"
)

// Cursor is the cursor of the live lane of a partition. Its methods may be called from many
// goroutines at once.
type Cursor interface {
	// ProcessedSeq returns the number of the last record that this process has committed.
	ProcessedSeq() uint64
	// StoredSeq returns that of the cursor in the database, in the transaction of ctx; 0
	// if it has none of this log.
	StoredSeq(ctx context.Context) (uint64, error)
}

// FollowCursor sets the cursor of the live lane. It must be called before Recover. Without
// a cursor, positions behind one are not written.
func (p *Partition) FollowCursor(c Cursor) { p.cursor = c }

const (
	// aheadInterval is the pause between two reads ahead of the cursor. A node that takes
	// the partition over reads the records of this time, and of the time without an owner.
	aheadInterval = 5 * time.Second
	aheadRecords  = 1024
	aheadBytes    = 1 << 20
)

// ScanAhead looks for erasures in the records behind the cursor, and writes the position
// up to which the database knows them, until ctx ends: the next owner of the partition
// reads the records behind the position only. While the worker keeps up, there is nothing
// to write. Recover must have succeeded, and must not run meanwhile.
func (p *Partition) ScanAhead(ctx context.Context) {
	for retry.Sleep(ctx, aheadInterval) {
		if err := p.scanAhead(ctx); err != nil {
			p.log.Debug("log not scanned for erasures; trying again", zap.String("partition", p.id), zap.Error(err))
		}
	}
}

// scanAhead reads through the newest record. It recovers nothing: an erasure that is carried
// out now has its record before its marks. The position waits for it.
func (p *Partition) scanAhead(ctx context.Context) error {
	if err := p.alignScan(ctx); err != nil {
		return err
	}
	s := p.scan
	for s.unread == 0 {
		c, err := p.readChunk(ctx, p.records, p.id, s.next, aheadRecords, aheadBytes)
		if err != nil {
			return err
		}
		if c.isEnd() {
			break
		}
		s.add(&c)
	}
	if !s.isDue(p.saveRecords) {
		return nil
	}
	return p.savePosition(ctx, s)
}

// alignScan moves the scan to the cursor, if that is ahead. It begins again if another node
// has written the position, or the log has lost the last record that was read.
func (p *Partition) alignScan(ctx context.Context) error {
	cursor := uint64(0)
	if p.cursor != nil {
		cursor = p.cursor.ProcessedSeq()
	}
	p.scan.skipTo(cursor)
	if !p.scan.replaced {
		if p.scan.through.digest == 0 {
			return nil // at a cursor
		}
		if ok, err := p.contains(ctx, p.scan.through); err != nil || ok {
			return err
		}
	}
	s, err := p.startScan(ctx, p.scan.first, cursor)
	if err == nil {
		p.scan = s
	}
	return err
}

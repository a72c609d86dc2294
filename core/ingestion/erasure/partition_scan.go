package erasure

import (
	"context"

	"go.uber.org/zap"
)

// scan is the search of a partition for erasures. It is for one goroutine.
type scan struct {
	first uint64 // the log has no records before this one
	next  uint64 // records through this one were read

	// found has all erasures of the records (base, through]. The database knows those
	// through base if it has its cursor there, or with stored if it has the position there.
	base           uint64
	stored         bool
	through        position
	found          erasureList
	records, bytes int // of (base, through]

	unread   uint64   // through does not move beyond a record that could not be read; 0 without
	row      position // the position in the database
	replaced bool     // by another one: the scan has to begin again
}

// newScan returns a scan that begins behind a record.
func newScan(first, after uint64) *scan {
	after = max(after, max(first, 1)-1)
	return &scan{first: first, next: after, base: after, through: position{seq: after}}
}

// add adds what was read behind next.
func (s *scan) add(c *chunk) {
	s.next = c.through.seq
	if s.unread != 0 {
		s.unread = max(s.unread, c.unread)
		return
	}
	if c.unread != 0 {
		s.unread = c.unread
		return
	}
	s.through = c.through
	s.found.add(c.found...)
	s.records += c.records
	s.bytes += c.bytes
}

// skipTo begins again behind the cursor, if that has passed what was read, and the records
// that could not be read.
func (s *scan) skipTo(cursor uint64) {
	if cursor < s.through.seq || cursor < s.unread {
		return
	}
	row, replaced := s.row, s.replaced
	*s = *newScan(s.first, cursor)
	s.row, s.replaced = row, replaced
}

// The number of records, and of their bytes, that a takeover reads again because the
// position is not written for fewer.
const (
	saveRecords = 16 << 10
	saveBytes   = 32 << 20
)

// isDue reports whether the position is worth a transaction: the scan is at least so many
// records behind its base.
func (s *scan) isDue(records int) bool { return s.records >= records || s.bytes >= saveBytes }

// saved notes that the database has the position through.
func (s *scan) saved() {
	s.row, s.base, s.stored = s.through, s.through.seq, true
	s.found, s.records, s.bytes = erasureList{}, 0, 0
}

// startScan returns the scan of the partition behind a cursor: it begins at the position
// in the database, if that is later and the log has its record.
func (p *Partition) startScan(ctx context.Context, first, cursor uint64) (*scan, error) {
	s := newScan(first, cursor)
	var err error
	if s.row, err = p.store.scanPosition(ctx, p.id); err != nil || s.row.seq <= s.base {
		return s, err
	}
	if s.stored, err = p.contains(ctx, s.row); err != nil {
		return nil, err
	}
	if !s.stored {
		p.log.Warn("log has other records than it had: reading it for erasures from the cursor",
			zap.String("partition", p.id), zap.Uint64("cursor", cursor), zap.Uint64("position", s.row.seq))
		return s, nil
	}
	s.next, s.base, s.through = s.row.seq, s.row.seq, s.row
	return s, nil
}

// contains reports whether the log has the record of a position.
func (p *Partition) contains(ctx context.Context, at position) (bool, error) {
	c, err := p.readChunk(ctx, p.records, p.id, at.seq-1, 1, 1)
	return err == nil && c.records > 0 && c.through == at, err
}

// savePosition writes how far the scan is, if the database shows that it knows the
// erasures up to there. The transaction looks itself, since a backup may have replaced the
// database after the scan began.
func (p *Partition) savePosition(ctx context.Context, s *scan) error {
	saved := false
	err := p.db.Tx(ctx, func(ctx context.Context) error {
		row, err := p.store.scanPosition(ctx, p.id)
		if err != nil {
			return err
		}
		if s.replaced = row != s.row; s.replaced {
			return nil
		}
		if ok, err := p.knowsBase(ctx, s); err != nil || !ok {
			return err
		}
		if ok, err := p.knowsAll(ctx, s.found.all); err != nil || !ok {
			return err
		}
		saved, err = p.store.moveScanPosition(ctx, p.id, row, s.through)
		return err
	})
	if err == nil && saved {
		s.saved()
	}
	return err
}

// knowsBase reports whether the database knows the erasures of the records through the
// base: its position is there, its cursor has passed it, or the log has none of them.
func (p *Partition) knowsBase(ctx context.Context, s *scan) (bool, error) {
	if s.stored || s.base < max(s.first, 1) {
		return true, nil
	}
	if p.cursor == nil {
		return false, nil
	}
	cursor, err := p.cursor.StoredSeq(ctx)
	return s.base <= cursor, err
}

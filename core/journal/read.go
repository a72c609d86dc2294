package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/guidonhq/guidon/core/journal/format"
)

// Read returns the records after a number; see Journal.
func (j *store) Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	records, err := j.readOnce(ctx, after, maxRecords, maxBytes)
	if err == nil || errors.Is(err, errClosing) {
		return records, err
	}
	if format.IsDamage(err) {
		err = j.locate(ctx, after, err)
	}
	if err == nil { // the records have just been trimmed
		return j.readOnce(ctx, after, maxRecords, maxBytes)
	}
	return nil, readFault(ctx, fmt.Errorf("read the journal after record %d: %w", after, err))
}

func (j *store) readOnce(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]Record, error) {
	if err := j.enter(); err != nil {
		return nil, err
	}
	defer j.life.RUnlock()
	span := j.index.span()
	if after >= span.last || span.empty() {
		return nil, nil
	}
	p := selector{after: max(after, span.first-1), maxRecords: maxRecords, maxBytes: maxBytes} // the tail may still hold trimmed records
	if !j.tail.selectFrom(&p) {
		p.exclusive = true
		if err := j.selectBlocks(ctx, &p); err != nil && p.count == 0 {
			return nil, err
		}
	}
	return p.records(), nil
}

// selectBlocks lets p take from the blocks of the file. Its error
// satisfies isDamage if the next record is missing or damaged.
func (j *store) selectBlocks(ctx context.Context, p *selector) error {
	next := p.after + 1
	err := j.blocksAt(ctx, int64(next), func(b format.Block) bool {
		switch {
		case b.Last() < next:
			return true
		case b.Seq > next:
			return false
		}
		next = b.Last() + 1
		return p.add(b)
	})
	if err == nil && p.count == 0 {
		err = format.ErrMissing
	}
	return err
}

// readFault returns the error of ctx, or an Unavailable fault that asks for a
// retry.
func readFault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errUnreadable.Because(err)
}

// enter keeps the files open until j.life.RUnlock.
func (j *store) enter() error {
	j.life.RLock()
	if j.closed {
		j.life.RUnlock()
		return errClosing
	}
	return nil
}

// blocksAt calls take with the blocks of the file, from the one with record seq
// on, until take returns false.
func (j *store) blocksAt(ctx context.Context, seq int64, take func(format.Block) bool) error {
	rows, err := j.blocksFrom.QueryContext(uninterrupted, seq)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for r := (format.Row{}); rows.Next(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.Scan(rows); err != nil {
			return err
		}
		b, err := r.Verify()
		if err != nil {
			return err
		}
		if !take(b) {
			return nil
		}
	}
	return rows.Err()
}

// Wait returns when there may be a record after a number; see Journal.
func (j *store) Wait(ctx context.Context, after uint64) error {
	for {
		rung := j.broadcast.next()
		if span := j.index.span(); span.last > after && !span.empty() {
			return nil
		}
		select {
		case <-rung:
		case <-ctx.Done():
			return ctx.Err()
		case <-j.closing:
			return errClosing
		}
	}
}

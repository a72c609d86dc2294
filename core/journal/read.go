package journal

import (
	"context"
	"database/sql"
	"fmt"
)

// blocksFromSQL finds the block that holds record ?1, or the first one after
// it, and all that follow.
const blocksFromSQL = `
	SELECT seq, n, at, pos, form, crc, data FROM blocks
	WHERE seq >= coalesce((SELECT max(seq) FROM blocks WHERE seq <= ?1), 0)
	ORDER BY seq`

// DamagedError is in the error chain of Read when the next records fail their
// checksum: the disk has lost them. A reader may report it and continue after
// Last.
type DamagedError struct {
	First, Last uint64

	at, pos int64
	cause   error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("records %d to %d are damaged: %v", e.First, e.Last, e.cause)
}

// Unwrap returns the error of the checksum or the format.
func (e *DamagedError) Unwrap() error { return e.cause }

// Read returns the records after a number; see Journal.
func (j *store) Read(ctx context.Context, after uint64, maxRecords, maxBytes int) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := j.enter(); err != nil {
		return nil, err
	}
	defer j.life.RUnlock()
	span := j.index.span()
	if after >= span.last || span.empty() {
		return nil, nil
	}
	after = max(after, span.first-1) // the tail may still hold trimmed records
	p := selector{after: after, maxRecords: maxRecords, maxBytes: maxBytes}
	if !j.tail.selectFrom(&p) {
		if err := j.blocksAt(ctx, int64(after+1), p.add); err != nil && p.count == 0 {
			return nil, readFault(ctx, fmt.Errorf("read the journal after record %d: %w", after, err))
		}
	}
	return p.records(), nil
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
func (j *store) blocksAt(ctx context.Context, seq int64, take func(block) bool) error {
	rows, err := j.blocksFrom.QueryContext(uninterrupted, seq)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := scanBlock(rows)
		if err != nil {
			return err
		}
		if !take(b) {
			return nil
		}
	}
	return rows.Err()
}

func scanBlock(rows *sql.Rows) (block, error) {
	var seq, crc int64
	var form int
	var stored sql.RawBytes
	var b block
	err := rows.Scan(&seq, &b.n, &b.at, &b.pos, &form, &crc, &stored)
	if err != nil {
		return block{}, err
	}
	b.seq = uint64(seq)
	if b.data, err = unpack(form, uint32(crc), stored); err == nil {
		err = b.check()
	}
	if err != nil {
		return block{}, &DamagedError{First: b.seq, Last: b.last(), at: b.at, pos: b.pos, cause: err}
	}
	return b, nil
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

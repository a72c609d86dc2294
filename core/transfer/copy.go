package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

const (
	defaultBatchBytes = 4 << 20
	batchRows         = 20_000
	batchesAhead      = 2 // that are read while one is written

	// defaultLargeTable is the number of rows from which on the indexes of a table are
	// created after its rows.
	defaultLargeTable = 20_000
)

// copyTable copies the rows of a table that are not in the target yet. One goroutine reads
// and encodes them while another one writes.
func (s *session) copyTable(ctx context.Context, p *tablePlan) error {
	state, err := s.dst.state(ctx, p.name)
	if err != nil {
		return err
	}
	s.progress.Rows += state.rows + state.skipped
	s.progress.RowsResumed += state.rows + state.skipped
	s.showProgress()
	if state.done {
		return nil
	}
	if state.last == nil && p.rows >= cmp.Or(int64(s.options.largeTable), defaultLargeTable) {
		if err := s.dst.setAside(ctx, p.name); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	full, empty := make(chan *batch, batchesAhead), make(chan *batch, batchesAhead+1)
	for range cap(empty) {
		empty <- &batch{}
	}
	go func() {
		defer close(full)
		if err := s.readBatches(ctx, p, state.last, full, empty); err != nil {
			cancel(err)
		}
	}()
	err = s.writeBatches(ctx, p, state, full, empty)
	cancel(err)
	for range full { // until the reader has ended
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

func (s *session) readBatches(ctx context.Context, p *tablePlan, after rowKey, full chan<- *batch, empty <-chan *batch) error {
	limit := cmp.Or(s.options.BatchBytes, defaultBatchBytes)
	var b *batch
	broken := s.broken[p.name]
	send := func() error {
		select {
		case full <- b:
			b = nil
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := s.src.read(ctx, p, after, func(key rowKey, values []any, damaged error) error {
		if b == nil {
			select {
			case b = <-empty:
				b.reset()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		b.last = key
		if reason, ok := broken[key.encodeIf(len(broken) > 0)]; ok {
			damaged = errors.New(reason)
		}
		if damaged == nil {
			damaged = b.add(p.columns, values)
		}
		if damaged != nil {
			if err := s.leaveOut(p, key, values, damaged); err != nil {
				return err
			}
			b.skipped++
		}
		if len(b.data) < limit && b.rows+b.skipped < batchRows {
			return nil
		}
		return send()
	})
	if err == nil && b != nil {
		err = send()
	}
	return err
}

// writeBatches writes batches until the reader has ended.
func (s *session) writeBatches(ctx context.Context, p *tablePlan, state *tableState, full <-chan *batch, empty chan<- *batch) error {
	for b := range full {
		next := *state
		next.add(b)
		if err := s.writeBatch(ctx, p, b, &next); err != nil {
			return err
		}
		*state = next
		s.progress.Rows += b.rows + b.skipped
		s.report.Bytes += int64(len(b.data))
		s.progress.BytesWritten = s.report.Bytes
		s.showProgress()
		empty <- b
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	state.done = true
	return s.dst.saveState(ctx, p.name, state)
}

// writeBatch stores a batch. If PostgreSQL refuses a row, it leaves the row out if it may.
func (s *session) writeBatch(ctx context.Context, p *tablePlan, b *batch, state *tableState) error {
	err := s.dst.writeBatch(ctx, p, b, state)
	if err == nil || !refusesRow(err) {
		return err
	}
	if s.options.BrokenRows == nil {
		return fmt.Errorf("%w (--broken-rows FILE writes such rows to a file and leaves them out)", err)
	}
	if err := s.writeRows(ctx, p, b, state); err != nil {
		return fmt.Errorf("write table %s: %w", p.name, explain(err))
	}
	return nil
}

// add adds a batch to the progress.
func (s *tableState) add(b *batch) {
	s.last, s.rows, s.skipped, s.replaced, s.sum = b.last, s.rows+b.rows, s.skipped+b.skipped, s.replaced+b.replaced, s.sum+b.sum
}

// leaveOut reports a row that cannot be copied. It fails if no row may be left out.
func (s *session) leaveOut(p *tablePlan, key rowKey, values []any, reason error) error {
	if s.options.BrokenRows == nil {
		return fmt.Errorf("table %s, row with %s: %w", p.name, p.describeKey(key), reason)
	}
	row := make(map[string]any, len(values))
	for i, c := range p.columns {
		row[c.name] = values[i]
	}
	return s.options.BrokenRows(BrokenRow{p.name, p.describeKey(key), reason.Error(), row})
}

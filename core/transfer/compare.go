package transfer

import (
	"context"
	"fmt"
)

// compareCopied compares the target with what was written, which the state of the transfer
// counts.
func (s *session) compareCopied(ctx context.Context) error {
	s.progress.Of, s.progress.Tables = len(s.plan), 0
	for _, p := range s.plan {
		s.progress.Tables++
		s.stage("verifying", p.name)
		state, err := s.dst.state(ctx, p.name)
		if err != nil {
			return err
		}
		rows := state.rows + state.skipped
		if err := s.compare(ctx, p, rows, state); err != nil {
			return err
		}
		if rows != p.rows {
			return fmt.Errorf("table %s has %d rows, and %d were read: %w", p.name, p.rows, rows, ErrChanged)
		}
	}
	if err := s.differs(); err != nil {
		return fmt.Errorf("%w: begin again with --restart", err)
	}
	return nil
}

// compareAll compares the target with the source.
func (s *session) compareAll(ctx context.Context) error {
	s.progress.Of, s.progress.Tables = len(s.plan), 0
	for _, p := range s.plan {
		s.progress.Tables++
		s.stage("verifying", p.name)
		state, err := s.sourceChecksum(ctx, p)
		if err != nil {
			return err
		}
		if err := s.compare(ctx, p, state.rows+state.skipped, state); err != nil {
			return err
		}
		s.progress.Rows += p.rows
		s.showProgress()
	}
	return s.differs()
}

func (s *session) compare(ctx context.Context, p *tablePlan, rows int64, state *tableState) error {
	r := TableReport{Name: p.name, Rows: rows, Skipped: state.skipped, Replaced: state.replaced, Checksum: hexSum(state.sum)}
	var sum uint64
	var err error
	if r.TargetRows, sum, err = s.dst.checksum(ctx, p); err != nil {
		return err
	}
	r.TargetChecksum = hexSum(sum)
	s.report.Tables = append(s.report.Tables, r)
	return nil
}

// sourceChecksum reads a table of the source as a copy would. Rows that cannot be copied
// count as skipped.
func (s *session) sourceChecksum(ctx context.Context, p *tablePlan) (*tableState, error) {
	state, b := &tableState{}, &batch{}
	b.reset()
	err := s.src.read(ctx, p, nil, func(key rowKey, values []any, damaged error) error {
		if _, broken := s.broken[p.name][key.encodeIf(len(s.broken[p.name]) > 0)]; broken || damaged != nil || b.add(p.columns, values) != nil {
			b.skipped++
		}
		if len(b.data) >= defaultBatchBytes {
			state.add(b)
			b.reset()
		}
		return ctx.Err()
	})
	state.add(b)
	return state, err
}

func hexSum(sum uint64) string { return fmt.Sprintf("%016x", sum) }

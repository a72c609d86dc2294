package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

func (s *session) run(ctx context.Context) (err error) {
	if s.dst == nil && s.options.Verify {
		return errors.New("the target has no data: nothing to verify")
	}
	state := ""
	if !s.options.DryRun && !s.options.Verify {
		if state, err = fileState(ctx, s.from, s.file); err != nil {
			return err
		}
	}
	if s.src, err = openSource(ctx, s.from); err != nil {
		return err
	}
	if s.dst == nil {
		return s.countOnly(ctx)
	}
	if s.plan, err = newPlan(ctx, s.src, s.dst); err != nil {
		return err
	}
	for _, p := range s.plan {
		s.progress.AllOf += p.rows
	}
	complete, err := s.begin(ctx, state)
	if err != nil {
		return err
	}
	if complete || s.options.Verify {
		s.report.Complete = complete
		return s.compareAll(ctx)
	}
	if err := s.findBroken(ctx); err != nil {
		return err
	}
	if s.options.DryRun {
		return s.planReport(ctx)
	}
	return s.transfer(ctx, state)
}

// transfer copies what is missing and compares.
func (s *session) transfer(ctx context.Context, state string) error {
	s.progress.Stage, s.progress.Of = "copying", len(s.plan)
	for i, p := range s.plan {
		s.progress.Table, s.progress.Tables = p.name, i+1
		if err := s.copyTable(ctx, p); err != nil {
			return err
		}
	}
	s.stage("indexing", "")
	if err := s.dst.createIndexes(ctx); err != nil {
		return err
	}
	for _, p := range s.plan {
		if p.identity == "" {
			continue
		}
		last, err := s.src.number(ctx, p.name, p.identity)
		if err != nil {
			return err
		}
		if err := s.dst.setNumber(ctx, p, last); err != nil {
			return err
		}
	}
	if err := s.compareCopied(ctx); err != nil {
		return err
	}
	s.src.Close()
	now, err := fileState(ctx, s.from, s.file)
	if err != nil {
		return err
	}
	if now != state {
		return ErrChanged
	}
	s.stage("analyzing", "")
	if _, err := s.dst.conn.Exec(ctx, "ANALYZE"); err != nil {
		return fmt.Errorf("analyze %s: %w", s.to, err)
	}
	return s.dst.finish(ctx)
}

func (s *session) stage(name, table string) {
	s.progress.Stage, s.progress.Table = name, table
	s.showProgress()
}

func (s *session) showProgress() {
	if s.options.Progress != nil {
		s.options.Progress(s.progress)
	}
}

// begin finds what the target holds. complete reports a transfer of the same source that
// is finished.
func (s *session) begin(ctx context.Context, state string) (complete bool, err error) {
	unfinished, err := s.dst.unfinished(ctx)
	if err != nil {
		return false, err
	}
	id, err := s.src.identity(ctx)
	if err != nil {
		return false, err
	}
	if s.options.Verify {
		return false, nil
	}
	if unfinished && s.options.Restart && !s.options.DryRun {
		if err := s.dst.restart(ctx); err != nil {
			return false, err
		}
		unfinished = false
	}
	if unfinished {
		return false, s.resume(ctx, id, state)
	}
	used, err := s.dst.firstUsed(ctx)
	if err != nil {
		return false, err
	}
	if used == "" {
		if s.options.DryRun {
			return false, nil
		}
		return false, s.dst.begin(ctx, map[string]string{noteIdentity: id, noteSource: state})
	}
	there, err := s.dst.identity(ctx)
	if err != nil {
		return false, err
	}
	if there != id {
		return false, fmt.Errorf("%s is not empty: its table %s has rows: choose an empty database", s.to, used)
	}
	return true, nil
}

// resume checks that an unfinished transfer can continue.
func (s *session) resume(ctx context.Context, id, state string) (err error) {
	if s.notes, err = s.dst.notes(ctx); err != nil {
		return err
	}
	switch {
	case s.notes[noteIdentity] != id:
		return fmt.Errorf("%s has an unfinished transfer from another source: begin again with --restart, which deletes it", s.to)
	case s.options.DryRun:
	case s.notes[noteSource] != state:
		return ErrChanged
	}
	s.report.Resumed = true
	return nil
}

// countOnly is a dry run with a target that has no schema.
func (s *session) countOnly(ctx context.Context) error {
	for _, name := range copied {
		n, err := s.src.count(ctx, name)
		if err != nil {
			return err
		}
		s.report.Tables = append(s.report.Tables, TableReport{Name: name, Rows: n})
	}
	return nil
}

// planReport reports the rows of a dry run: those of the source, and those that an
// unfinished transfer has copied.
func (s *session) planReport(ctx context.Context) error {
	for _, p := range s.plan {
		r := TableReport{Name: p.name, Rows: p.rows, Skipped: int64(len(s.broken[p.name]))}
		if s.report.Resumed {
			state, err := s.dst.state(ctx, p.name)
			if err != nil {
				return err
			}
			r.TargetRows = state.rows
		}
		s.report.Tables = append(s.report.Tables, r)
	}
	return nil
}

// differs returns ErrDiffers with the names of tables, nil without one.
func (s *session) differs() error {
	names := s.report.Differing()
	if names == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrDiffers, strings.Join(names, ", "))
}

package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

func (s *session) run(ctx context.Context) error {
	if err := s.openPlan(ctx); err != nil {
		return err
	}
	switch {
	case s.dst == nil && s.options.Verify:
		return errors.New("the target has no data: nothing to verify")
	case s.dst == nil:
		return s.countOnly(ctx)
	}
	if err := s.findBroken(ctx); err != nil {
		return err
	}
	if s.options.Verify {
		return s.compareAll(ctx)
	}
	mode, err := s.examine(ctx)
	if err != nil {
		return err
	}
	if mode == modeComplete {
		s.report.Complete = true
		return s.compareAll(ctx)
	}
	s.report.Resumed = mode == modeResume
	if err := s.refuseBroken(); err != nil {
		return err
	}
	if s.options.DryRun {
		return s.planReport(ctx)
	}
	return s.start(ctx, mode)
}

// openPlan begins to read the source, and plans the tables unless the target has none.
func (s *session) openPlan(ctx context.Context) (err error) {
	if s.src, err = openSource(ctx, s.from); err != nil || s.dst == nil {
		return err
	}
	s.plan, err = newPlan(ctx, s.src, s.dst)
	s.progress.AllOf = 0
	for _, p := range s.plan {
		s.progress.AllOf += p.rows
	}
	return err
}

// start begins or continues a transfer. The source is read from a moment at which its
// write-ahead log is empty: then its file tells whether it changes later.
func (s *session) start(ctx context.Context, mode mode) error {
	id, err := s.src.identity(ctx)
	if err != nil {
		return err
	}
	s.src.Close()
	if mode == modeNew && s.options.Announce != nil {
		if err := s.options.Announce(ctx, s.from, s.to.String()); err != nil {
			return err
		}
	}
	state, err := fileState(ctx, s.from, s.file)
	if err != nil {
		return err
	}
	if err := s.openPlan(ctx); err != nil {
		return err
	}
	if mode == modeResume {
		if s.notes[noteSource] != state {
			return ErrChanged
		}
		return s.transfer(ctx, state)
	}
	if s.notes != nil {
		if err := s.dst.restart(ctx); err != nil {
			return err
		}
	}
	if err := s.dst.begin(ctx, map[string]string{noteIdentity: id, noteSource: state}); err != nil {
		return err
	}
	return s.transfer(ctx, state)
}

// transfer copies the missing rows and compares.
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

// mode is what there is to do.
type mode int

const (
	modeNew      mode = iota // the target is empty, or restarted
	modeResume               // an unfinished transfer from this source
	modeComplete             // a complete one
)

// examine finds what the target holds. s.notes are those of an unfinished transfer.
func (s *session) examine(ctx context.Context) (mode, error) {
	id, err := s.src.identity(ctx)
	if err != nil {
		return 0, err
	}
	unfinished, err := s.dst.unfinished(ctx)
	if err != nil {
		return 0, err
	}
	if unfinished {
		s.notes, err = s.dst.notes(ctx)
		switch {
		case err != nil:
			return 0, err
		case s.options.Restart:
			return modeNew, nil
		case s.notes[noteIdentity] != id:
			return 0, fmt.Errorf("%s has an unfinished transfer from another source: begin again with --restart, which deletes it", s.to)
		}
		return modeResume, nil
	}
	used, err := s.dst.firstUsed(ctx)
	if err != nil || used == "" {
		return modeNew, err
	}
	there, err := s.dst.identity(ctx)
	if err != nil {
		return 0, err
	}
	if there != id {
		return 0, fmt.Errorf("%s is not empty: its table %s has rows: choose an empty database", s.to, used)
	}
	return modeComplete, nil
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

package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal/files"
	"github.com/guidonhq/guidon/core/journal/format"
	"github.com/guidonhq/guidon/core/journal/incident"
	"github.com/guidonhq/guidon/core/journal/mark"
	"github.com/guidonhq/guidon/core/sqlitewal"
)

// MarkName is the file with the number of the newest durable record, in the
// directory of the journal.
const MarkName = "journal.mark"

var errLostEnd = errors.New("the newest records are missing: the write-ahead log or the end of the file was lost")

// repairWAL corrects a damaged write-ahead log before SQLite replays it. The
// damaged log stays beside it.
func (j *store) repairWAL() error {
	path := j.path + "-wal"
	next := path + ".repaired"
	page, err := sqlitewal.PageSize(j.path, format.PageBytes)
	if err != nil {
		return err
	}
	r, written, err := sqlitewal.Repair(path, next, page, true)
	if err != nil || !r.IsDamaged() {
		return err
	}
	kept := files.AsidePath(path)
	if err := os.Rename(path, kept); err != nil {
		return err
	}
	if written {
		if err := os.Rename(next, path); err != nil {
			return err
		}
	}
	j.log.Error("journal write-ahead log damaged", zap.Int("damaged_frames", len(r.Damaged)), zap.Int("corrected", r.Corrected),
		zap.Int("dropped", r.Dropped), zap.Int("commits_saved", r.LostCommits), zap.String("kept", kept))
	return files.SyncDir(filepath.Dir(path))
}

// damagedFile adds what to do to the error of a file that is malformed, or that lacks a
// row or has one that no journal has.
func damagedFile(err error) error {
	if !format.IsMalformed(err) && !errors.Is(err, format.ErrRow) && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return fmt.Errorf("the file is damaged: %w; run `guidon journal check` to see the damage and `guidon journal repair` to copy what can be read into a new file", err)
}

// readMark compares the mark with a journal that was just opened: records that it
// names and that the file does not hold are lost.
func (j *store) readMark(created bool) error {
	path := filepath.Join(filepath.Dir(j.path), MarkName)
	m, found, err := mark.Read(path)
	switch {
	case errors.Is(err, mark.ErrDamaged):
		j.log.Warn("journal mark unreadable: lost records at the end cannot be noticed at this start", zap.String("path", path), zap.Error(err))
	case err != nil:
		return err
	case found && m.ID != j.id:
		j.previous = &m
		j.log.Error("new journal created although the directory has been used", zap.Bool("created_now", created),
			zap.String("was", m.ID), zap.Uint64("was_last", m.Last), zap.String("is", j.id))
		j.addIncident(incident.JournalReplaced, "The journal %s is in the place of the journal %s, whose newest record was %d: "+
			"acknowledged events of that journal that were not processed are missing.", j.id, m.ID, m.Last)
	case found && m.Last > j.index.extent.last:
		e := &j.index.extent
		lost := &DamagedError{First: e.last + 1, Last: m.Last, cause: errLostEnd}
		e.last = m.Last
		j.reportDamage(lost)
		j.addIncident(incident.RecordsMissing, "The records %d to %d are missing at the end of the journal: their events were acknowledged.", lost.First, lost.Last)
	}
	j.mark, err = mark.Open(path, j.id)
	return err
}

// hasFile reports whether the journal's file exists and is not empty.
func hasFile(path string) bool {
	n, err := files.Size(path)
	return err == nil && n > 0
}

package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/guidonhq/guidon/core/backup/archive"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/journal/format"
	"github.com/guidonhq/guidon/core/sqlitewal"
)

// journalSnapshot is the file of a journal at one moment.
type journalSnapshot struct {
	pages   *pageSnapshot
	info    archive.Journal
	dropped map[string]bool // readers of which retention has removed unread records
}

// openJournal opens the journal of an installation; nil if there is none.
func openJournal(ctx context.Context, src Source) (*journalSnapshot, error) {
	dir, err := src.Journal.Directory(src.DataDir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, format.FileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if !src.Serving {
		lock, err := journal.AcquireLock(src.Journal, src.DataDir)
		if err != nil && !errors.Is(err, journal.ErrLocked) {
			return nil, err
		}
		if err == nil { // no server has read the log
			defer func() { _ = lock.Release() }()
			if err := checkJournalLog(path); err != nil {
				return nil, err
			}
		}
	}
	return openJournalFile(ctx, path)
}

// checkJournalLog returns an error if the write-ahead log of a journal without a
// server is damaged: to open the file would discard commits.
func checkJournalLog(path string) error {
	page, err := sqlitewal.PageSize(path, format.PageBytes)
	if err != nil {
		return err
	}
	r, err := sqlitewal.Check(path+"-wal", page)
	if err == nil && r.IsDamaged() {
		err = fmt.Errorf("the write-ahead log of the journal %s is damaged: run guidon journal repair", path)
	}
	return err
}

func openJournalFile(ctx context.Context, path string) (_ *journalSnapshot, err error) {
	s := &journalSnapshot{dropped: map[string]bool{}}
	if s.pages, err = openPages(ctx, path); err != nil {
		return nil, err
	}
	if err := s.load(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// load reads the numbers and the cursors of the journal.
func (s *journalSnapshot) load(ctx context.Context) error {
	tx, next := s.pages.tx, uint64(0)
	if err := tx.QueryRowContext(ctx, "SELECT id, next_seq FROM head").Scan(&s.info.ID, &next); err != nil {
		return err
	}
	var last uint64
	err := tx.QueryRowContext(ctx, "SELECT coalesce((SELECT seq FROM blocks ORDER BY seq LIMIT 1), 0), coalesce((SELECT seq + n - 1 FROM blocks ORDER BY seq DESC LIMIT 1), 0)").
		Scan(&s.info.First, &last)
	if err != nil {
		return err
	}
	s.info.Last = max(last, next-1)
	if s.info.First == 0 {
		s.info.First = s.info.Last + 1
	}
	rows, err := tx.QueryContext(ctx, "SELECT name, seq, idx, count, dropped FROM readers ORDER BY name")
	if err != nil {
		return err
	}
	type reader struct {
		archive.Position
		dropped int64
	}
	readers, err := scanRows(rows, func(r *reader) []any { return []any{&r.Name, &r.Seq, &r.Index, &r.Count, &r.dropped} })
	s.info.Readers = []archive.Position{}
	for _, r := range readers {
		s.info.Readers = append(s.info.Readers, r.Position)
		s.dropped[r.Name] = r.dropped > 0
	}
	return err
}

// Close ends the read transaction.
func (s *journalSnapshot) Close() { s.pages.Close() }

// newest returns when the newest record was received; zero without one.
func (s *journalSnapshot) newest(ctx context.Context) (time.Time, error) {
	var at int64
	err := s.pages.tx.QueryRowContext(ctx, "SELECT coalesce((SELECT at FROM blocks ORDER BY seq DESC LIMIT 1), 0)").Scan(&at)
	if err != nil || at == 0 {
		return time.Time{}, err
	}
	return time.UnixMicro(at).UTC(), nil
}

// lastUntil returns the last record of a journal that was received until a time;
// false if there are no later ones.
func lastUntil(ctx context.Context, path string, until time.Time) (last uint64, later bool, err error) {
	s, err := openJournalFile(ctx, path)
	if err != nil {
		return 0, false, err
	}
	defer s.Close()
	var first uint64
	err = s.pages.tx.QueryRowContext(ctx, "SELECT coalesce(min(seq), 0) FROM blocks WHERE at > ?", until.UnixMicro()).Scan(&first)
	return max(first, 1) - 1, first > 0, err
}

// Package logcheck checks and repairs the write-ahead log of a SQLite file before it
// is opened: SQLite discards all commits behind a damaged frame. It works only while
// no process has the file open. Package sqlitewal knows the format of the log.
package logcheck

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/guidonhq/guidon/core/sqlitewal"
)

// Damage describes a damaged write-ahead log that was found at the start.
type Damage struct {
	// Kept is the path under which the damaged log was kept.
	Kept string `json:"kept"`
	// Corrected is the number of damaged frames that were corrected.
	Corrected int `json:"corrected"`
	// LostCommits is the least number of durable commits that are lost because
	// frames could not be corrected: commits within the damage are not counted.
	LostCommits int `json:"lost_commits"`
}

// DamagedError is the error of Check: opening the file would discard commits.
type DamagedError struct {
	path    string
	commits int
}

// Error says what to do.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the write-ahead log %s is damaged, and at least %d commits behind the damage would be lost: run guidon serve, which keeps the log and corrects it as far as possible", e.path, e.commits)
}

// Check returns an error if the write-ahead log of a SQLite file is damaged:
// opening the file would discard commits. It does nothing while a process has
// the file open, which has read the log already.
func Check(path string) error {
	return withoutUsers(path, func(page int) error {
		r, err := sqlitewal.Check(path+"-wal", page)
		if err == nil && r.IsDamaged() {
			return &DamagedError{path: path + "-wal", commits: r.LostCommits}
		}
		return err
	})
}

// Repair corrects a damaged write-ahead log before SQLite replays it, and
// keeps the damaged one. A frame that cannot be corrected ends the log: a
// database without a page in the middle would not be consistent. It returns nil
// for an intact log, and while a process has the file open.
func Repair(path string) (d *Damage, err error) {
	return d, withoutUsers(path, func(page int) error {
		log := path + "-wal"
		next := log + ".repaired"
		r, written, err := sqlitewal.Repair(log, next, page, false)
		if err != nil || !r.IsDamaged() {
			return err
		}
		d = &Damage{Kept: log + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000"), Corrected: r.Corrected}
		if !written {
			d.Corrected, d.LostCommits = 0, r.LostCommits
			if err := copySynced(log, next); err != nil {
				return err
			}
		}
		if err := errors.Join(os.Rename(log, d.Kept), os.Rename(next, log)); err != nil {
			return err
		}
		return syncDir(filepath.Dir(path))
	})
}

// withoutUsers calls f with the size of a page if there is a write-ahead log and
// no process has the file open. Until f returns, no process can open it.
func withoutUsers(path string, f func(page int) error) error {
	info, err := os.Stat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() < logHeaderBytes {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if free, err := lockSQLite(file); err != nil || !free {
		return err
	}
	page, err := sqlitewal.PageSizeOf(file, path+"-wal", defaultPage)
	if err != nil {
		return fmt.Errorf("read the page size: %w", err)
	}
	if err := f(page); err != nil {
		return fmt.Errorf("check the write-ahead log: %w", err)
	}
	return nil
}

// logHeaderBytes is the length of the header of a write-ahead log; a shorter one has no
// frames.
const logHeaderBytes = 32

// defaultPage is the size of a page of the files that Guidon creates.
const defaultPage = 4096

func copySynced(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

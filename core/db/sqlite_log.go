package db

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/guidonhq/guidon/core/sqlitewal"
)

// LogDamage describes a damaged write-ahead log that was found at the start.
type LogDamage struct {
	// Kept is the path under which the damaged log was kept.
	Kept string `json:"kept"`
	// Corrected is the number of damaged frames that were corrected.
	Corrected int `json:"corrected"`
	// LostCommits is the least number of durable commits that are lost because
	// frames could not be corrected: commits within the damage are not counted.
	LostCommits int `json:"lost_commits"`
}

// errLogDamaged is the error of an Open that must not repair.
type errLogDamaged struct {
	path    string
	commits int
}

func (e *errLogDamaged) Error() string {
	return fmt.Sprintf("the write-ahead log %s is damaged, and at least %d commits behind the damage would be lost: run guidon serve, which keeps the log and corrects it as far as possible", e.path, e.commits)
}

// checkLog returns an error if the write-ahead log of a SQLite file is damaged:
// opening the file would discard commits. It does nothing while a process has
// the file open, which has read the log already.
func checkLog(path string) error {
	return withoutUsers(path, func(page int) error {
		r, err := sqlitewal.Check(path+"-wal", page)
		if err == nil && r.IsDamaged() {
			return &errLogDamaged{path: path + "-wal", commits: r.LostCommits}
		}
		return err
	})
}

// repairLog corrects a damaged write-ahead log before SQLite replays it, and
// keeps the damaged one. A frame that cannot be corrected ends the log: a
// database without a page in the middle would not be consistent. It returns nil
// for an intact log, and while a process has the file open.
func repairLog(path string) (d *LogDamage, err error) {
	return d, withoutUsers(path, func(page int) error {
		log := path + "-wal"
		next := log + ".repaired"
		r, written, err := sqlitewal.Repair(log, next, page, false)
		if err != nil || !r.IsDamaged() {
			return err
		}
		d = &LogDamage{Kept: log + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000"), Corrected: r.Corrected}
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
func withoutUsers(path string, f func(page int) error) (err error) {
	page, err := pageBytes(path + "-wal")
	if err != nil || page == 0 {
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
	if main, err := pageBytesOfFile(file); err == nil && main != 0 {
		page = main
	}
	if err := f(page); err != nil {
		return fmt.Errorf("check the write-ahead log: %w", err)
	}
	return nil
}

// pageBytes is the size of a page by the header of a log; 0 if there is no log.
func pageBytes(log string) (int, error) {
	f, err := os.Open(log)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	var header [12]byte
	if n, _ := f.ReadAt(header[:], 0); n < len(header) {
		return 0, nil
	}
	if n := int(binary.BigEndian.Uint32(header[8:])); isPageSize(n) {
		return n, nil
	}
	return defaultPage, nil
}

// defaultPage is the size of a page of the files that Guidon creates.
const defaultPage = 4096

// pageBytesOfFile is the size of a page by the header of a SQLite file; 0 if it
// has none.
func pageBytesOfFile(f *os.File) (int, error) {
	var header [2]byte
	if n, err := f.ReadAt(header[:], 16); n < len(header) {
		return 0, err
	}
	n := int(binary.BigEndian.Uint16(header[:]))
	if n == 1 {
		n = 1 << 16
	}
	if !isPageSize(n) {
		return 0, nil
	}
	return n, nil
}

func isPageSize(n int) bool { return n >= 512 && n <= 1<<16 && n&(n-1) == 0 }

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

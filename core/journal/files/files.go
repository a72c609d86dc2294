// Package files handles the files in the directory of a journal: their lock, their
// modes, the syncs that make names durable, and the replacement of the SQLite file.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrLocked is the error of a journal that a process has open.
var ErrLocked = errors.New("it is already open")

// MakeDir creates the directory and syncs its parent, so that it survives a power
// failure.
func MakeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(SyncDir(dir), SyncDir(filepath.Dir(dir)))
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Create creates a missing file before SQLite does: its log files get the mode of
// the file.
func Create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Size returns the length of a file, 0 for a missing one.
func Size(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Secure makes the files of the journal readable by their owner only.
func Secure(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 || !strings.HasPrefix(e.Name(), "journal.") {
			continue
		}
		if err := os.Chmod(filepath.Join(dir, e.Name()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// AsidePath is the name under which a damaged file is kept.
func AsidePath(path string) string {
	return path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000")
}

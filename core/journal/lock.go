package journal

import (
	"fmt"
	"path/filepath"

	"github.com/guidonhq/guidon/core/journal/files"
)

// Lock holds the lock of a journal directory, which keeps servers away from it.
type Lock struct{ file *files.FileLock }

// AcquireLock takes the lock that a server holds while it runs, without opening
// the journal. It creates the directory if it is missing. It fails with
// ErrLocked, the directory and the process id in the message when another process
// holds the lock. The system releases the lock when the process ends.
func AcquireLock(cfg Config, dataDir string) (*Lock, error) {
	dir, err := cfg.Directory(dataDir)
	if err == nil {
		err = files.MakeDir(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the journal: %w", err)
	}
	file, err := files.Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("lock the journal %s: %w", dir, err)
	}
	return &Lock{file}, nil
}

// Release releases the lock.
func (l *Lock) Release() error { return l.file.Close() }

// Directory returns the absolute directory of the journal of a data directory.
func (c Config) Directory(dataDir string) (string, error) {
	if c.Dir != "" {
		return filepath.Abs(c.Dir)
	}
	return filepath.Abs(filepath.Join(dataDir, "journal"))
}

package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxSocketBase is the longest directory in which a plugin's socket still has a
// path the system takes: 107 bytes, less what we and go-plugin add.
const maxSocketBase = 56

// runDir is the private directory of one run of the host, with a lock that
// tells the next run whether we are still there.
type runDir struct {
	path string
	lock *os.File
}

// newRunDir makes the directory below the first base that can hold it, and
// removes those of runs that are over.
func newRunDir(configured, dataDir string) (*runDir, error) {
	bases := []string{configured}
	if configured == "" {
		bases = []string{filepath.Join(dataDir, "run"), filepath.Join(os.TempDir(), fmt.Sprintf("guidon-%d", os.Getuid()))}
	}
	var problems []error
	for _, base := range bases {
		r, err := runDirIn(base)
		if err == nil {
			return r, nil
		}
		problems = append(problems, err)
	}
	return nil, errors.Join(problems...)
}

func runDirIn(base string) (*runDir, error) {
	base, err := filepath.Abs(base)
	if err != nil {
		return nil, err
	}
	if len(base) > maxSocketBase {
		return nil, fmt.Errorf("%s is too long for sockets: at most %d bytes", base, maxSocketBase)
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	if err := ours(base); err != nil {
		return nil, err
	}
	removeStale(base)
	for try := 0; ; try++ {
		r, err := claim(base)
		if err == nil || try == 10 {
			return r, err
		}
	}
}

// claim makes a directory and locks it. Another host that sweeps at this very
// moment may take it for a stale one before the lock is ours; then it fails.
func claim(base string) (*runDir, error) {
	path, err := os.MkdirTemp(base, "h")
	if err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, "owner"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = still(lock)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close(), os.RemoveAll(path))
	}
	return &runDir{path: path, lock: lock}, nil
}

// still fails when the file is no longer where it was made.
func still(f *os.File) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(f.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(mine, there) {
		return fmt.Errorf("%s was replaced", f.Name())
	}
	return nil
}

// ours refuses a directory that somebody else made or can write to.
func ours(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a directory that only we can write to", dir)
	}
	return nil
}

// removeStale removes the directories whose owner is gone. A directory without
// a lock file is just being made, or about to be removed.
func removeStale(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), "h") {
			continue
		}
		path := filepath.Join(base, e.Name())
		f, err := os.Open(filepath.Join(path, "owner"))
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(path)
		}
		_ = f.Close()
	}
}

// ensure makes the directory again when somebody has tidied it away, as they do
// below the system's temporary directory.
func (r *runDir) ensure() error { return os.MkdirAll(r.path, 0o700) }

func (r *runDir) remove() error {
	return errors.Join(os.RemoveAll(r.path), r.lock.Close())
}

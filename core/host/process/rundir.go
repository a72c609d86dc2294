package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// maxSocketBase is the longest base directory: a socket path has at most 107 bytes,
// of which the host and go-plugin use the rest.
const maxSocketBase = 56

// RunDir is the private directory of one run of the host. A lock file shows the
// next run whether this one still exists.
type RunDir struct {
	path string
	lock *os.File
	mode os.FileMode

	mu    sync.Mutex
	users *RunDir // for processes of other users; nil before the first
}

// NewRunDir makes the directory below the configured base, or without one below
// the data directory or the system's temporary directory. It removes the
// directories of ended runs.
func NewRunDir(configured, dataDir string) (*RunDir, error) {
	bases := []string{configured}
	if configured == "" {
		bases = []string{filepath.Join(dataDir, "run"), filepath.Join(os.TempDir(), fmt.Sprintf("guidon-%d", os.Getuid()))}
	}
	var problems []error
	for _, base := range bases {
		r, err := makeRunDir(base)
		if err == nil {
			return r, nil
		}
		problems = append(problems, err)
	}
	return nil, errors.Join(problems...)
}

func makeRunDir(base string) (*RunDir, error) {
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
	if err := checkPrivate(base); err != nil {
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

// claim makes a directory and locks it. It fails when another host removes the
// directory as stale before the lock is taken; the caller retries.
func claim(base string) (*RunDir, error) {
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
		err = checkUnreplaced(lock)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close(), os.RemoveAll(path))
	}
	return &RunDir{path: path, lock: lock, mode: 0o700}, nil
}

// checkUnreplaced fails when the path of f names another file now.
func checkUnreplaced(f *os.File) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	current, err := os.Stat(f.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(opened, current) {
		return fmt.Errorf("%s was replaced", f.Name())
	}
	return nil
}

// checkPrivate fails for a directory that another user owns or can write to.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a directory that only this user can write to", dir)
	}
	return nil
}

// removeStale removes the directories of ended runs. A directory without a lock
// file is being made or removed.
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

// Path returns the directory. It makes it again when it was removed, as cleaners of
// temporary directories do.
func (r *RunDir) Path() (string, error) { return r.path, os.MkdirAll(r.path, r.mode) }

// Remove removes the directory, also that for other users, and releases the lock.
func (r *RunDir) Remove() error {
	r.mu.Lock()
	users := r.users
	r.users = nil
	r.mu.Unlock()
	var err error
	if users != nil {
		err = users.Remove()
	}
	return errors.Join(err, os.RemoveAll(r.path), r.lock.Close())
}

package dbtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	memory      = "/dev/shm"
	memoryRoom  = 1 << 30
	tmpfs       = 0x01021994       // the type of file system in statfs(2)
	prefix      = "guidon-dbtest-" // of all folders that go with their process
	sweepingAge = time.Minute      // a folder is locked long before
)

// fastDir is where databases live that need not survive a power cut: the shared memory if it
// has room, else the directory for temporary files. A disk has to write the 600 files of each
// database on Postgres, and syncs each commit on SQLite.
var fastDir = sync.OnceValue(func() string {
	if hasRoom(memory) {
		return memory
	}
	return os.TempDir()
})

// hasRoom reports whether dir is memory that every account may use and that has a gigabyte
// free. A container often has 64 MB of it.
func hasRoom(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o007 != 0o007 {
		return false
	}

	var on syscall.Statfs_t
	if err := syscall.Statfs(dir, &on); err != nil {
		return false
	}
	return on.Type == tmpfs && on.Bavail*uint64(on.Bsize) >= memoryRoom
}

// folder is a directory that belongs to the account alone. It is locked as long as its
// process, or one that inherited the lock, lives. Without its lock it is litter: sweep
// removes it.
type folder struct {
	path string
	lock *os.File
}

func newFolder(who account, dir string) (folder, error) {
	path, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		return folder{}, err
	}
	if err := os.Chown(path, who.uid, who.gid); err != nil {
		_ = os.RemoveAll(path)
		return folder{}, err
	}
	lock, err := lockDir(path, syscall.LOCK_SH)
	if err != nil {
		_ = os.RemoveAll(path)
		return folder{}, err
	}
	return folder{path, lock}, nil
}

func (f folder) remove() {
	_ = os.RemoveAll(f.path)
	_ = f.lock.Close()
}

// lockDir locks a directory with flock until the file that it returns, and all its
// duplicates in other processes, are closed. The error is fs.ErrNotExist also if the
// directory was removed or replaced in the meantime.
func lockDir(path string, how int) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}

	locked, err := f.Stat()
	if err == nil {
		var found fs.FileInfo
		if found, err = os.Lstat(path); err == nil && !os.SameFile(locked, found) {
			err = &fs.PathError{Op: "lock", Path: path, Err: fs.ErrNotExist}
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes, once in a process, folders whose processes were killed.
var sweep = sync.OnceFunc(func() { sweepDirs(memory, os.TempDir()) })

func sweepDirs(dirs ...string) {
	old := time.Now().Add(-sweepingAge)
	for _, dir := range dirs {
		found, _ := filepath.Glob(filepath.Join(dir, prefix+"*")) // fails on a bad pattern only
		for _, path := range found {
			info, err := os.Lstat(path)
			if err != nil || !info.IsDir() || info.ModTime().After(old) {
				continue
			}
			lock, err := lockDir(path, syscall.LOCK_EX|syscall.LOCK_NB)
			if err != nil {
				continue // in use, or another account's
			}
			folder{path, lock}.remove()
		}
	}
}

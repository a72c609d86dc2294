package place

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// directory is the path of a directory.
type directory string

const partialSuffix = ".guidon-partial"

// abandonedAfter is the age at which something incomplete without a lock belongs to a
// process that has ended.
const abandonedAfter = 24 * time.Hour

// Path implements Place.
func (d directory) Path(name string) string { return filepath.Join(string(d), name) }

// Create implements Place. It creates the directory if it is missing.
func (d directory) Create(_ context.Context, name string, _ int64) (File, error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, err
	}
	for {
		f, err := os.CreateTemp(string(d), "."+name+".*"+partialSuffix) // mode 0600
		if err != nil {
			return nil, err
		}
		_ = tryLock(f) // without locks, Clean goes by the age
		if inPlace(f) {
			return &localFile{File: f, path: d.Path(name)}, nil
		}
		_ = f.Close() // Clean has removed the file before it was locked
	}
}

// tryLock locks a file until it is closed, also by the end of the process.
func tryLock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// inPlace reports whether the path of f still names f.
func inPlace(f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(opened, named) || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// Open implements Place.
func (d directory) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(d.Path(name))
}

// List implements Place.
func (d directory) List(context.Context) ([]Entry, error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []Entry
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		out = append(out, Entry{Name: e.Name(), Bytes: info.Size(), At: info.ModTime()})
	}
	return out, err
}

// Remove implements Place.
func (d directory) Remove(_ context.Context, name string) error { return os.Remove(d.Path(name)) }

// Clean implements Place.
func (d directory) Clean(context.Context) error {
	paths, err := filepath.Glob(filepath.Join(string(d), ".*"+partialSuffix))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := removeAbandoned(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeAbandoned removes a partial file unless a process writes it.
func removeAbandoned(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	switch err := tryLock(f); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil
	case err != nil && time.Since(info.ModTime()) < abandonedAfter: // no locks
		return nil
	}
	return os.Remove(path)
}

// localFile is a file under a temporary name.
type localFile struct {
	*os.File
	path    string
	written int64 // bytes that were not passed to the disk yet
}

// writeBehind is the number of bytes after which written pages are passed to the disk
// and dropped from the page cache, which a large backup would otherwise fill.
const writeBehind = 4 << 20

// Write writes p.
func (f *localFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if f.written += int64(n); err == nil && f.written >= writeBehind {
		f.written = 0
		if err = f.Sync(); err == nil {
			dropCache(f.File)
		}
	}
	return n, err
}

// Commit implements File.
func (f *localFile) Commit(ctx context.Context) error {
	err := f.Sync()
	if err == nil {
		dropCache(f.File)
		err = ctx.Err()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		f.Abort()
		return err
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		f.Abort()
		return err
	}
	return syncDir(filepath.Dir(f.path))
}

// Abort implements File.
func (f *localFile) Abort() {
	_ = f.Close() // may be closed already
	_ = os.Remove(f.Name())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

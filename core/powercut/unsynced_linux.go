package powercut

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

const (
	pageSize   = 4096
	sectorSize = 512
)

// file holds the changes of a file since its last fsync.
type file struct {
	size int64            // at the last fsync
	old  map[int64][]byte // content at the last fsync of the overwritten pages, by number
}

// change is a change of metadata. undo takes it back; committed, if not nil, is called
// when it is durable.
type change struct {
	undo      func() error
	committed func() error
}

func (d *disk) note(c change) { d.changes = append(d.changes, c) }

// commitChanges makes all changes of metadata durable.
func (d *disk) commitChanges() error {
	changes := d.changes
	d.changes = nil
	var errs []error
	for _, c := range changes {
		if c.committed != nil {
			errs = append(errs, c.committed())
		}
	}
	return errors.Join(errs...)
}

// sync makes the content of a file durable, and all changes of metadata before it.
func (d *disk) sync(f *os.File) error {
	inode, _, err := stat(f)
	if err != nil {
		return err
	}
	delete(d.files, inode)
	return d.commitChanges()
}

// state returns the changes of a file since its last fsync.
func (d *disk) state(f *os.File) (*file, error) {
	inode, size, err := stat(f)
	if err != nil {
		return nil, err
	}
	s := d.files[inode]
	if s == nil {
		s = &file{size: size, old: map[int64][]byte{}}
		d.files[inode] = s
	}
	return s, nil
}

func (d *disk) write(f *os.File, data []byte, offset int64) (int, error) {
	s, err := d.state(f)
	if err != nil {
		return 0, err
	}
	for page := offset / pageSize; page*pageSize < min(offset+int64(len(data)), s.size); page++ {
		if err := s.keep(f, page); err != nil {
			return 0, err
		}
	}
	return f.WriteAt(data, offset)
}

// keep reads the content of a page before it is overwritten for the first time.
func (s *file) keep(f *os.File, page int64) error {
	if _, ok := s.old[page]; ok {
		return nil
	}
	content := make([]byte, min(pageSize, s.size-page*pageSize))
	n, err := f.ReadAt(content, page*pageSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.old[page] = content[:n]
	return nil
}

// truncate changes the size of a file. A shorter size is a change of metadata: it
// becomes durable with the next fsync of any file.
func (d *disk) truncate(f *os.File, size int64) error {
	s, err := d.state(f)
	if err != nil {
		return err
	}
	_, before, err := stat(f)
	if err != nil || size >= before {
		return errors.Join(err, f.Truncate(size))
	}
	tail := make([]byte, before-size)
	if _, err := f.ReadAt(tail, size); err != nil {
		return err
	}
	inode, _, err := stat(f)
	if err != nil {
		return err
	}
	d.note(change{
		undo:      func() error { return d.restoreTail(inode, s, size, tail) },
		committed: func() error { s.shorten(size); return nil },
	})
	return f.Truncate(size)
}

// shorten drops synced bytes beyond a size.
func (s *file) shorten(size int64) {
	s.size = min(s.size, size)
	for page := range s.old {
		if page*pageSize >= size {
			delete(s.old, page)
		}
	}
}

func (d *disk) restoreTail(inode uint64, s *file, size int64, tail []byte) error {
	path, err := d.find(inode)
	if err != nil || path == "" {
		return err
	}
	for page := range s.old {
		if page >= size/pageSize {
			delete(s.old, page)
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(tail, size); err != nil {
		return err
	}
	return f.Truncate(size + int64(len(tail)))
}

func (d *disk) noteCreated(path string) {
	d.note(change{undo: func() error { return os.RemoveAll(path) }})
}

// remove moves a file out of sight until its removal is durable.
func (d *disk) remove(path string) error {
	kept := filepath.Join(d.removed, fmt.Sprint(len(d.changes), "-", filepath.Base(path)))
	if err := os.Rename(path, kept); err != nil {
		return err
	}
	d.note(change{
		undo:      func() error { return os.Rename(kept, path) },
		committed: func() error { return d.forget(kept) },
	})
	return nil
}

// forget deletes a removed file for good. Its inode may serve another file from now on.
func (d *disk) forget(kept string) error {
	var st syscall.Stat_t
	if err := syscall.Lstat(kept, &st); err == nil && st.Nlink == 1 {
		delete(d.files, st.Ino)
	}
	return os.RemoveAll(kept)
}

func (d *disk) rename(from, to string) error {
	if info, err := os.Lstat(to); err == nil && !info.IsDir() {
		if err := d.remove(to); err != nil {
			return err
		}
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	d.note(change{undo: func() error { return os.Rename(to, from) }})
	return nil
}

func stat(f *os.File) (inode uint64, size int64, err error) {
	var st syscall.Stat_t
	err = syscall.Fstat(int(f.Fd()), &st)
	return st.Ino, st.Size, err
}

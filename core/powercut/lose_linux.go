package powercut

import (
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// lose drops a random part of the unsynced writes. The disk is not mounted.
func (d *disk) lose(random *rand.Rand) error {
	if err := d.undoChanges(random); err != nil {
		return err
	}
	for _, inode := range slices.Sorted(maps.Keys(d.files)) {
		path, err := d.find(inode)
		if err != nil {
			return err
		}
		if path == "" {
			continue // the file was removed
		}
		if err := d.loseContent(path, d.files[inode], random); err != nil {
			return err
		}
	}
	d.files = map[uint64]*file{}
	return nil
}

// undoChanges undoes a random suffix of the changes of metadata.
func (d *disk) undoChanges(random *rand.Rand) error {
	keep := random.IntN(len(d.changes) + 1)
	for _, c := range slices.Backward(d.changes[keep:]) {
		if err := c.undo(); err != nil {
			return err
		}
	}
	d.losses.Changes += len(d.changes) - keep
	d.changes = d.changes[:keep]
	return d.commitChanges()
}

func (d *disk) loseContent(path string, s *file, random *rand.Rand) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := d.loseEnd(f, s, random); err != nil {
		return err
	}
	for _, page := range slices.Sorted(maps.Keys(s.old)) {
		if err := d.losePage(f, page, s.old[page], random); err != nil {
			return err
		}
	}
	return nil
}

// loseEnd shortens a file that has grown: to the size at its last fsync, not at all,
// or to a sector between.
func (d *disk) loseEnd(f *os.File, s *file, random *rand.Rand) error {
	_, size, err := stat(f)
	if err != nil || size <= s.size {
		return err
	}
	left := size
	switch random.IntN(3) {
	case 0:
		left = s.size
	case 1:
		left = max(s.size, (s.size+random.Int64N(size-s.size))/sectorSize*sectorSize)
	}
	d.losses.Bytes += size - left
	return f.Truncate(left)
}

// losePage leaves a page new, gives it its old content, or mixes their sectors.
func (d *disk) losePage(f *os.File, page int64, old []byte, random *rand.Rand) error {
	kind := random.IntN(3)
	switch kind {
	case 0:
		return nil
	case 1:
		d.losses.OldPages++
	case 2:
		d.losses.TornPages++
	}
	for at := 0; at < len(old); at += sectorSize {
		if kind == 2 && random.IntN(2) == 0 {
			continue
		}
		if _, err := f.WriteAt(old[at:min(at+sectorSize, len(old))], page*pageSize+int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// find returns the path of the content with an inode, "" if no such file exists.
func (d *disk) find(inode uint64) (path string, err error) {
	err = filepath.WalkDir(d.store, func(at string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(at, &st); err != nil {
			return err
		}
		if st.Ino == inode {
			path = at
			return fs.SkipAll
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return path, err
}

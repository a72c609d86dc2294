package parquet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/guidonhq/guidon/sdk"
)

// place is where files are put. Names are relative, with slashes. An error has
// a class already.
type place interface {
	// put makes a file durable, whole or not at all, in place of one of that name.
	put(ctx context.Context, name string, data []byte) error
	// get reads a file; nil when there is none.
	get(ctx context.Context, name string) ([]byte, error)
	// remove takes a file away, if it is there.
	remove(ctx context.Context, name string) error
}

// disk is a directory. Files come into being in a folder of their own and are
// moved to where they belong.
type disk struct {
	root, coming string
	count        atomic.Uint64
}

// openDisk makes the directory, and removes what an earlier process of the
// instance was writing when it ended.
func openDisk(root, instance string) (*disk, error) {
	d := &disk{root: root, coming: filepath.Join(root, own, "tmp", instance)}
	if err := os.RemoveAll(d.coming); err != nil {
		return nil, pathError(err)
	}
	if err := os.MkdirAll(d.coming, 0o750); err != nil {
		return nil, pathError(err)
	}
	return d, nil
}

func (d *disk) put(_ context.Context, name string, data []byte) error {
	to := filepath.Join(d.root, filepath.FromSlash(name))
	if err := d.makeDir(filepath.Dir(to)); err != nil {
		return pathError(err)
	}
	from := filepath.Join(d.coming, fmt.Sprintf("%d.tmp", d.count.Add(1)))
	if err := write(from, data); err != nil {
		return pathError(errors.Join(err, os.Remove(from)))
	}
	if err := os.Rename(from, to); err != nil {
		return pathError(errors.Join(err, os.Remove(from)))
	}
	return pathError(syncDir(filepath.Dir(to)))
}

// makeDir makes a directory and those above it, each durable in the one it is
// in.
func (d *disk) makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if parent := filepath.Dir(dir); strings.HasPrefix(parent, d.root) && parent != dir {
		if err := d.makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// write makes a file whose content is on the disk.
func write(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes a new name in the directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d *disk) get(_ context.Context, name string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(d.root, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, pathError(err)
}

func (d *disk) remove(_ context.Context, name string) error {
	path := filepath.Join(d.root, filepath.FromSlash(name))
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return pathError(err)
	}
	return pathError(syncDir(filepath.Dir(path)))
}

// pathError blames the config for what only the operator can change.
func pathError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return sdk.AsError(sdk.Throttled(err, 0)).WithCode("disk_full")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS),
		errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENAMETOOLONG):
		return sdk.ConfigError("/path", err)
	}
	return sdk.Transient(err)
}

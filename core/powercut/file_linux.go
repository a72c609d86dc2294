package powercut

import (
	"context"
	"os"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// opened is an open file. A file that was removed keeps its content until it is closed.
type opened struct {
	disk *disk
	f    *os.File
	once sync.Once
}

// open opens the content at path. The caller holds d.mu.
func (d *disk) open(path string, flags uint32) (fs.FileHandle, syscall.Errno) {
	truncate := flags&syscall.O_TRUNC != 0
	// The kernel computes offsets of appends; reading serves pages that are written in part.
	mode := os.O_RDONLY
	if flags&(syscall.O_WRONLY|syscall.O_RDWR) != 0 {
		mode = os.O_RDWR
	}
	f, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return nil, fs.ToErrno(err)
	}
	if truncate && mode == os.O_RDWR {
		if err := d.truncate(f, 0); err != nil {
			f.Close()
			return nil, fs.ToErrno(err)
		}
	}
	return &opened{disk: d, f: f}, 0
}

// Read reads all writes, synced or not.
func (o *opened) Read(_ context.Context, dest []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	return fuse.ReadResultFd(o.f.Fd(), offset, len(dest)), 0
}

// Write keeps the old content of each page and writes.
func (o *opened) Write(_ context.Context, data []byte, offset int64) (uint32, syscall.Errno) {
	o.disk.mu.Lock()
	defer o.disk.mu.Unlock()
	n, err := o.disk.write(o.f, data, offset)
	return uint32(n), fs.ToErrno(err)
}

// Fsync makes the content durable, and all changes of metadata.
func (o *opened) Fsync(context.Context, uint32) syscall.Errno {
	o.disk.mu.Lock()
	defer o.disk.mu.Unlock()
	return fs.ToErrno(o.disk.sync(o.f))
}

// Getattr returns the attributes of the open file.
func (o *opened) Getattr(_ context.Context, out *fuse.AttrOut) syscall.Errno { return o.getattr(out) }

func (o *opened) getattr(out *fuse.AttrOut) syscall.Errno {
	var st syscall.Stat_t
	if err := syscall.Fstat(int(o.f.Fd()), &st); err != nil {
		return fs.ToErrno(err)
	}
	out.FromStat(&st)
	return 0
}

// Flush has nothing to do: closing a file makes nothing durable.
func (o *opened) Flush(context.Context) syscall.Errno { return 0 }

// Release closes the content.
func (o *opened) Release(context.Context) syscall.Errno {
	o.once.Do(o.close)
	return 0
}

func (o *opened) close() {
	o.disk.mu.Lock()
	defer o.disk.mu.Unlock()
	var st syscall.Stat_t
	if err := syscall.Fstat(int(o.f.Fd()), &st); err == nil && st.Nlink == 0 {
		delete(o.disk.files, st.Ino) // another file may have this inode next
	}
	_ = o.f.Close()
}

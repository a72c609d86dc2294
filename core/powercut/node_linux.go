package powercut

import (
	"context"
	"os"
	"path/filepath"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is a file or directory. It notes each change of metadata before or after the
// loopback makes it.
type node struct {
	*fs.LoopbackNode
	disk *disk
}

// WrapChild makes a node of what the loopback makes for a file.
func (n *node) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	if loopback, ok := child.(*fs.LoopbackNode); ok {
		return &node{LoopbackNode: loopback, disk: n.disk}
	}
	return child
}

// content returns the path of the content of name in the directory n, or of n itself
// if name is empty.
func (n *node) content(name string) string {
	return filepath.Join(n.RootData.Path, n.Path(n.Root()), name)
}

// Mkdir makes a directory.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	child, errno := n.LoopbackNode.Mkdir(ctx, name, mode, out)
	if errno == 0 {
		n.disk.noteCreated(n.content(name))
	}
	return child, errno
}

// Mknod makes a socket.
func (n *node) Mknod(ctx context.Context, name string, mode, device uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	child, errno := n.LoopbackNode.Mknod(ctx, name, mode, device, out)
	if errno == 0 {
		n.disk.noteCreated(n.content(name))
	}
	return child, errno
}

// Link gives a file a second name.
func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	child, errno := n.LoopbackNode.Link(ctx, target, name, out)
	if errno == 0 {
		n.disk.noteCreated(n.content(name))
	}
	return child, errno
}

// Rmdir removes a directory.
func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	errno := n.LoopbackNode.Rmdir(ctx, name)
	if errno == 0 {
		path := n.content(name)
		n.disk.note(change{undo: func() error { return os.Mkdir(path, 0o700) }})
	}
	return errno
}

// Unlink keeps the content of the file until the removal is durable.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	return fs.ToErrno(n.disk.remove(n.content(name)))
}

// Rename keeps the content of a replaced file until the renaming is durable.
func (n *node) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	other, ok := parent.(*node)
	if !ok || flags != 0 {
		return syscall.ENOTSUP
	}
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	return fs.ToErrno(n.disk.rename(n.content(name), other.content(newName)))
}

// Create makes and opens a file.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	path := n.content(name)
	_, err := os.Lstat(path)
	child, handle, fuseFlags, errno := n.LoopbackNode.Create(ctx, name, flags&^syscall.O_TRUNC, mode, out)
	if errno != 0 {
		return child, handle, fuseFlags, errno
	}
	closeHandle(ctx, handle)
	if os.IsNotExist(err) {
		n.disk.noteCreated(path)
	}
	opened, errno := n.disk.open(path, flags)
	return child, opened, fuseFlags, errno
}

// Open opens a file.
func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	opened, errno := n.disk.open(n.content(""), flags)
	return opened, 0, errno
}

// Setattr changes size, mode, owner or times.
func (n *node) Setattr(ctx context.Context, handle fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	size, ok := in.GetSize()
	if !ok {
		return n.LoopbackNode.Setattr(ctx, nil, in, out)
	}
	if h, isOpen := handle.(*opened); isOpen {
		if err := n.disk.truncate(h.f, int64(size)); err != nil {
			return fs.ToErrno(err)
		}
		return h.getattr(out)
	}
	f, err := os.OpenFile(n.content(""), os.O_RDWR, 0)
	if err != nil {
		return fs.ToErrno(err)
	}
	defer f.Close()
	if err := n.disk.truncate(f, int64(size)); err != nil {
		return fs.ToErrno(err)
	}
	return n.Getattr(ctx, nil, out)
}

// OpendirHandle opens a directory.
func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	handle, fuseFlags, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	stream, ok := handle.(directoryStream)
	if !ok {
		return nil, 0, syscall.ENOTSUP
	}
	return &directory{directoryStream: stream, disk: n.disk}, fuseFlags, 0
}

// directoryStream is an open directory of the loopback.
type directoryStream interface {
	fs.FileReaddirenter
	fs.FileSeekdirer
	fs.FileReleasedirer
}

// directory is an open directory.
type directory struct {
	directoryStream
	disk *disk
}

// Fsyncdir makes the changes of the directory durable, and all others with them.
func (d *directory) Fsyncdir(context.Context, uint32) syscall.Errno {
	d.disk.mu.Lock()
	defer d.disk.mu.Unlock()
	return fs.ToErrno(d.disk.commitChanges())
}

func closeHandle(ctx context.Context, handle fs.FileHandle) {
	if h, ok := handle.(fs.FileReleaser); ok {
		_ = h.Release(ctx) // nothing was written with it
	}
}

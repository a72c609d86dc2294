package powercut

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// disk serves the file system in the process of its own that Mount starts.
type disk struct {
	path, store, removed string // the mount point, the content, removed files that may come back

	server *fuse.Server

	mu      sync.Mutex
	files   map[uint64]*file // by inode of the content
	changes []change         // of metadata since the last fsync, oldest first
	losses  Losses
}

// newDisk makes an empty disk and mounts it at path.
func newDisk(path, store string) (*disk, error) {
	d := &disk{path: path, store: filepath.Join(store, "content"), removed: filepath.Join(store, "removed"), files: map[uint64]*file{}}
	for _, dir := range []string{d.store, d.removed} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return d, d.mount()
}

// cut unmounts the disk, drops a part of the unsynced writes and mounts it again.
func (d *disk) cut(random *rand.Rand) error {
	if err := d.server.Unmount(); err != nil {
		return fmt.Errorf("unmount (is a file of the disk still open?): %w", err)
	}
	d.mu.Lock()
	err := d.lose(random)
	d.mu.Unlock()
	if err != nil {
		return fmt.Errorf("lose unsynced data: %w", err)
	}
	return d.mount()
}

// syncAll makes all content durable, as sync(2) does.
func (d *disk) syncAll() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = map[uint64]*file{}
	return d.commitChanges()
}

func (d *disk) mount() error {
	var st syscall.Stat_t
	if err := syscall.Stat(d.store, &st); err != nil {
		return err
	}
	root := &fs.LoopbackRoot{Path: d.store, Dev: st.Dev}
	top := &node{LoopbackNode: &fs.LoopbackNode{RootData: root}, disk: d}
	root.RootNode = top
	server, err := fs.Mount(d.path, top, &fs.Options{MountOptions: fuse.MountOptions{
		DirectMountStrict: true,
		FsName:            "powercut",
		Name:              "powercut",
	}})
	d.server = server
	return err
}

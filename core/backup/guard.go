package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/guidonhq/guidon/core/journal/files"
)

// ErrRunning is the error of a backup or a restore while another one of the same
// installation is in progress, in this process or another one.
var ErrRunning = errors.New("another backup or restore of this installation is running")

// acquireLock locks a data directory for a backup or a restore; nil without that
// directory, and on file systems without locks. The lock is on the directory, not on a
// file in it, which a command run by another user would own. The end of the process
// releases it.
func acquireLock(dataDir string) (*os.File, error) {
	f, err := os.Open(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock backups: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%s: %w", dataDir, ErrRunning), f.Close())
	}
	return f, nil
}

func releaseLock(f *os.File) {
	if f != nil { // a process that is being started may have a copy of the file
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
		_ = f.Close()
	}
}

// ErrTimeout is the error of a backup that takes longer than Options.Timeout.
var ErrTimeout = errors.New("the backup takes longer than backup.timeout: raise it or backup.rate_bytes")

// ErrLowSpace is the error of a backup that would fill a disk of the installation.
var ErrLowSpace = errors.New("a backup needs more free space, so that the journal has enough (twice journal.min_free_bytes or journal.min_free_percent)")

const guardInterval = time.Second

// guard returns a context that ends when the backup takes too long or when a disk of
// the installation has little free space: the backup may fill it, or the write-ahead
// log that grows meanwhile. The caller calls stop.
func guard(ctx context.Context, src Source, o Options) (_ context.Context, stop func(), err error) {
	dirs, err := src.disks()
	if err != nil {
		return nil, nil, err
	}
	if err := checkSpace(src, dirs); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if o.Timeout > 0 { // without a deadline, which would end waits for the rate with an error of their own
		timer := time.AfterFunc(o.Timeout, func() { cancel(ErrTimeout) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(guardInterval)
		defer tick.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-tick.C:
				if err := checkSpace(src, dirs); err != nil {
					cancel(err)
				}
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}, nil
}

// disks returns the directories whose disks the server writes.
func (s Source) disks() ([]string, error) {
	journalDir, err := s.Journal.Directory(s.DataDir)
	if err != nil {
		return nil, err
	}
	dirs := []string{s.DataDir, journalDir}
	if file := s.DB.File(); file != "" {
		dirs = append(dirs, filepath.Dir(file))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// checkSpace returns ErrLowSpace if one of the disks has less than twice the free
// space at which the journal refuses events. A disk that reports none has no guard.
func checkSpace(src Source, dirs []string) error {
	for _, dir := range dirs {
		free, size, err := files.Space(dir)
		if err != nil {
			continue
		}
		least := 2 * src.Journal.MinFree(size)
		if free < least {
			return fmt.Errorf("the disk of %s has %d MB free, and the backup keeps %d MB free: %w", strings.TrimSuffix(dir, "/"), free/1e6, least/1e6, ErrLowSpace)
		}
	}
	return nil
}

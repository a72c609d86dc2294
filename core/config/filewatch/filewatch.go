// Package filewatch notices changes of the config file and reads it when it is complete.
//
// Editors and configuration tools write a file in several steps. A file that takes its
// name by a rename is complete at once. For one that is written in place the watcher
// waits until nothing has written to it for a while, longer if it is not YAML, and, on
// Linux, until no process has it open for writing. An empty file is never complete.
// Other files in the directory may change all the time: only the content of this one
// counts. Without notifications of the file system the watcher polls.
package filewatch

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

const (
	// lookTime is the time from a change in the directory of the file to a look at the
	// file: one change is several notifications.
	lookTime = 50 * time.Millisecond
	// pollInterval is for file systems without change notifications.
	pollInterval = 15 * time.Second
)

// Watcher calls functions when a file changes and when the process receives a hangup.
// Fill in the fields before Start.
type Watcher struct {
	// File is the path of the file; "" watches hangups only.
	File string
	// Hangup receives a value for each hangup; it may be nil.
	Hangup <-chan os.Signal
	// Changed receives the content after a change, HungUp the content at a hangup, nil
	// if there is none. They are not called at the same time.
	Changed, HungUp func(ctx context.Context, source []byte)
	Log             *zap.Logger

	stop context.CancelFunc
	wg   sync.WaitGroup
	seen stability
}

// Start starts the watcher.
func (w *Watcher) Start(context.Context) error {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.seen.accept(readState(w.File))
	w.wg.Go(func() { w.run(ctx) })
	return nil
}

// Stop stops the watcher and waits for a running reload.
func (w *Watcher) Stop(context.Context) error {
	w.stop()
	w.wg.Wait()
	return nil
}

func (w *Watcher) run(ctx context.Context) {
	var events chan fsnotify.Event
	var failures chan error
	notify, err := fsnotify.NewWatcher()
	if err == nil {
		defer func() { _ = notify.Close() }()
		events, failures = notify.Events, notify.Errors
		w.watchDirs(notify)
	} else {
		w.Log.Warn("config watcher failed, polling instead", zap.Error(err))
	}
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	look := time.NewTimer(lookTime)
	defer look.Stop()
	for armed := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-w.Hangup:
			state := readState(w.File)
			w.seen.accept(state)
			w.HungUp(ctx, state.source)
		case <-events:
			if !armed { // other files in the directory may change all the time
				look.Reset(lookTime)
				armed = true
			}
		case err := <-failures:
			w.Log.Debug("config watcher error", zap.Error(err))
			look.Reset(lookTime)
			armed = true
		case <-poll.C:
			look.Reset(0)
			armed = true
		case <-look.C:
			if notify != nil {
				w.watchDirs(notify)
			}
			wait := w.reportIfComplete(ctx)
			if armed = wait > 0; armed {
				look.Reset(wait)
			}
		}
	}
}

// reportIfComplete reports a changed file, once nothing writes to it any more. It
// returns when to look again, 0 without a change.
func (w *Watcher) reportIfComplete(ctx context.Context) (wait time.Duration) {
	state := readState(w.File)
	read, wait := w.seen.observe(time.Now(), state)
	if read {
		w.Changed(ctx, state.source)
	}
	return wait
}

// watchDirs watches the directory of the file and, along symbolic links, the
// directories of their targets. A rename, or a replaced link as Kubernetes makes
// it, shows as a change in one of these directories.
func (w *Watcher) watchDirs(notify *fsnotify.Watcher) {
	if w.File == "" {
		return
	}
	path := w.File
	for range 16 { // links, at most
		_ = notify.Add(filepath.Dir(path)) // adding twice is harmless
		if whole, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			_ = notify.Add(whole)
		}
		next, err := os.Readlink(path)
		if err != nil {
			return
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = next
	}
}

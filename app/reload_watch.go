package app

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/host"
)

const (
	// settleTime is the time without a change after which the file is read:
	// editors and configuration tools write in several steps.
	settleTime = 200 * time.Millisecond
	// maxSettleTime bounds that wait: other files in the directory may change all the time.
	maxSettleTime = time.Second
	// pollInterval is for file systems without change notifications.
	pollInterval = 15 * time.Second
)

// watcher reloads the configuration when its file changes and when the process
// receives a hangup.
type watcher struct {
	reload func(ctx context.Context, cause string)
	file   string
	hangup <-chan os.Signal
	log    *zap.Logger

	stop context.CancelFunc
	wg   sync.WaitGroup
	seen [sha256.Size]byte // checksum of the content read last
}

// provideReloader returns the reloader and watches the file while the server
// runs.
func provideReloader(lc fx.Lifecycle, cfg Config, opts Options, h *host.Host, log *zap.Logger, reg prometheus.Registerer) (*reloader, error) {
	r, err := newReloader(cfg, opts, h, log, reg)
	if err != nil {
		return nil, err
	}
	w := &watcher{
		reload: func(ctx context.Context, cause string) { _, _ = r.Reload(ctx, cause) }, // Reload logs the error
		file:   opts.ConfigFile, hangup: opts.Hangup, log: r.log,
	}
	lc.Append(fx.StartStopHook(w.Start, w.Stop))
	return r, nil
}

// Start starts the watcher.
func (w *watcher) Start(context.Context) error {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.seen = w.checksum()
	w.wg.Go(func() { w.run(ctx) })
	return nil
}

// Stop stops the watcher and waits for a running reload.
func (w *watcher) Stop(context.Context) error {
	w.stop()
	w.wg.Wait()
	return nil
}

func (w *watcher) run(ctx context.Context) {
	var events chan fsnotify.Event
	var failures chan error
	notify, err := fsnotify.NewWatcher()
	if err == nil {
		defer func() { _ = notify.Close() }()
		events, failures = notify.Events, notify.Errors
		w.watchDirs(notify)
	} else {
		w.log.Warn("config watcher failed, polling instead", zap.Error(err))
	}
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	settled := time.NewTimer(settleTime)
	defer settled.Stop()
	var first time.Time // of the changes since the file was read
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.hangup:
			w.seen = w.checksum()
			w.reload(ctx, "hangup")
		case <-events:
			if first.IsZero() {
				first = time.Now()
			}
			if time.Since(first) < maxSettleTime {
				settled.Reset(settleTime)
			}
		case err := <-failures:
			w.log.Debug("config watcher error", zap.Error(err))
			settled.Reset(settleTime)
		case <-poll.C:
			settled.Reset(0)
		case <-settled.C:
			first = time.Time{}
			if notify != nil {
				w.watchDirs(notify)
			}
			// An empty file is still being written.
			if now := w.checksum(); now != w.seen && now != noContent {
				w.seen = now
				w.reload(ctx, "file changed")
			}
		}
	}
}

// noContent is the checksum of an empty or missing file.
var noContent [sha256.Size]byte

// checksum identifies the content of the file.
func (w *watcher) checksum() [sha256.Size]byte {
	if w.file == "" {
		return noContent
	}
	text, err := os.ReadFile(w.file)
	if err != nil || len(text) == 0 {
		return noContent
	}
	return sha256.Sum256(text)
}

// watchDirs watches the directory of the file and, along symbolic links, the
// directories of their targets. A rename, or a replaced link as Kubernetes makes
// it, shows as a change in one of these directories.
func (w *watcher) watchDirs(notify *fsnotify.Watcher) {
	if w.file == "" {
		return
	}
	path := w.file
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

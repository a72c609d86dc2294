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
	// settle is how long the file must be left alone before it is read: editors
	// and configuration tools write in several steps.
	settle = 200 * time.Millisecond
	// lookAgain is for file systems that tell nobody of changes.
	lookAgain = 15 * time.Second
)

// watcher reads the config again when its file changes and when the process is
// sent a hangup.
type watcher struct {
	reload func(ctx context.Context, because string)
	file   string
	hangup <-chan os.Signal
	log    *zap.Logger

	stop context.CancelFunc
	wg   sync.WaitGroup
	seen [sha256.Size]byte // of the content that was read last
}

// provideReloader makes the reloader and starts to watch the file.
func provideReloader(lc fx.Lifecycle, cfg Config, opts Options, h *host.Host, log *zap.Logger, reg prometheus.Registerer) (*reloader, error) {
	r, err := newReloader(cfg, opts, h, log, reg)
	if err != nil {
		return nil, err
	}
	w := &watcher{
		reload: func(ctx context.Context, because string) { _, _ = r.Reload(ctx, because) }, // it has been logged
		file:   opts.ConfigFile, hangup: opts.Hangup, log: r.log,
	}
	lc.Append(fx.StartStopHook(w.Start, w.Stop))
	return r, nil
}

// Start begins to watch.
func (w *watcher) Start(context.Context) error {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.seen = w.sum()
	w.wg.Go(func() { w.run(ctx) })
	return nil
}

// Stop ends the watching and waits for a reload that is under way.
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
		w.look(notify)
	} else {
		w.log.Warn("changes of the config are noticed late", zap.Error(err))
	}
	slow := time.NewTicker(lookAgain)
	defer slow.Stop()
	calm := time.NewTimer(settle)
	defer calm.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.hangup:
			w.seen = w.sum()
			w.reload(ctx, "hangup")
		case <-events:
			calm.Reset(settle)
		case err := <-failures:
			w.log.Debug("a change of the config may have gone unnoticed", zap.Error(err))
			calm.Reset(settle)
		case <-slow.C:
			calm.Reset(0)
		case <-calm.C:
			if notify != nil {
				w.look(notify)
			}
			// An empty file is one that is just being written.
			if now := w.sum(); now != w.seen && now != nothing {
				w.seen = now
				w.reload(ctx, "file changed")
			}
		}
	}
}

// nothing is the sum of a file that is empty or not there.
var nothing [sha256.Size]byte

// sum tells one content of the file from another.
func (w *watcher) sum() [sha256.Size]byte {
	if w.file == "" {
		return nothing
	}
	text, err := os.ReadFile(w.file)
	if err != nil || len(text) == 0 {
		return nothing
	}
	return sha256.Sum256(text)
}

// look watches the directories in which a change can show: that of the file's
// name and, along symbolic links, those of what it stands for. A file that is
// replaced by a rename, or reached through a link that is replaced, as
// Kubernetes does it, is another file in the same directory.
func (w *watcher) look(notify *fsnotify.Watcher) {
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

package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/retry"
)

// checkInterval is the pause between two checks of the disk. It bounds how long
// appends are refused after the reason is gone.
const checkInterval = 250 * time.Millisecond

var (
	errLowSpace = errors.New("the disk has less free space than the guard asks for")
	errOverSize = errors.New("the kept records have reached limit_bytes")
	errReplaced = errors.New("the journal's file was removed or replaced while it was in use; restart the server")
)

// health decides whether appends are accepted. It caches the refusal, so that a
// full disk under load costs nothing.
type health struct {
	cfg   Config
	path  string
	file  atomic.Pointer[os.File] // nil while it is replaced
	space spaceFunc

	index  *index
	log    *zap.Logger
	state  atomic.Pointer[refusal]
	failed atomic.Pointer[fault.Error] // set until restart
}

// spaceFunc returns the free space and the size of the disk of path.
type spaceFunc func(path string) (free, size int64, err error)

// refusal is the error of appends until its reason is gone.
type refusal struct {
	fault *fault.Error
	wrote bool  // a write failed: only a successful probe ends the refusal
	need  int64 // free bytes needed before a probe; 0 is unknown
}

// refusal returns the error of appends now, nil if they are accepted.
func (h *health) refusal() error {
	if r := h.state.Load(); r != nil {
		return r.fault
	}
	return nil
}

// recordWriteFailure records that a group of size bytes could not be written.
func (h *health) recordWriteFailure(f *fault.Error, size int) {
	r := &refusal{fault: f, wrote: true}
	if f.Code == errFull.Code {
		r.need = 2 * int64(size)
	}
	h.refuse(r)
}

// markFailed refuses appends until the process restarts.
func (h *health) markFailed(err error) {
	h.fail(fmt.Errorf("fsync failed; restart the server after the disk is repaired: %w", err))
}

// fail refuses appends until the process restarts.
func (h *health) fail(err error) {
	h.failed.Store(errUnavailable.Because(err))
	h.check()
}

func (h *health) refuse(r *refusal) {
	if before := h.state.Swap(r); before == nil || before.fault.Code != r.fault.Code {
		h.log.Error("journal refuses appends", zap.String("code", r.fault.Code), zap.Error(r.fault))
	}
}

// accept ends the refusal r, unless there is a newer one.
func (h *health) accept(r *refusal) {
	if h.state.CompareAndSwap(r, nil) {
		h.log.Info("journal accepts appends again")
	}
}

// check updates the refusal. A reason that check found ends when it is gone; a
// failed write needs a probe, and check returns its refusal when a probe is due.
func (h *health) check() (probe *refusal) {
	now := h.state.Load()
	if f := h.findReason(); f != nil {
		h.refuse(&refusal{fault: f, wrote: now != nil && now.wrote})
		return nil
	}
	switch {
	case now == nil:
		return nil
	case !now.wrote:
		h.accept(now)
		return nil
	case now.need > 0:
		if free, _, err := h.space(h.path); err == nil && free+h.index.reusable() < now.need {
			return nil
		}
	}
	return now
}

// findReason returns a reason to refuse appends that needs no write to detect.
func (h *health) findReason() *fault.Error {
	if f := h.failed.Load(); f != nil {
		return f
	}
	if !h.inPlace() {
		return errUnavailable.Because(errReplaced)
	}
	if h.cfg.LimitBytes > 0 && h.index.span().bytes() >= h.cfg.LimitBytes {
		return errFull.Because(errOverSize)
	}
	// A system that cannot report free space has no guard.
	if free, size, err := h.space(h.path); err == nil && !enough(free, h.index.reusable(), h.cfg.MinFree(size)) {
		return errFull.Because(errLowSpace)
	}
	return nil
}

// inPlace reports whether the path still names the open file.
func (h *health) inPlace() bool {
	file := h.file.Load()
	if file == nil {
		return true
	}
	open, err := file.Stat()
	if err == nil {
		named, missing := os.Stat(h.path)
		if missing == nil && os.SameFile(open, named) {
			return true
		}
	}
	return h.file.Load() != file // the journal replaced the file meanwhile
}

// enough reports whether the disk has enough free space. Free space within the
// file counts, too, because appends use it first; an eighth must be on the disk
// itself, for the write-ahead log.
func enough(free, reusable, least int64) bool {
	return free >= least || free >= least/8 && free+reusable >= least
}

// run checks the disk until ctx ends, and probes writing after a failure.
func (h *health) run(ctx context.Context, probe func() error) {
	for retry.SleepAligned(ctx, checkInterval) {
		if r := h.check(); r != nil && probe() == nil {
			h.accept(r)
		}
	}
}

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
)

// lookInterval is the pause between two looks at the disk. It bounds how long
// appends are still refused after the reason has gone.
const lookInterval = 250 * time.Millisecond

var (
	errLowSpace = errors.New("the disk has less free space than the guard asks for")
	errOverSize = errors.New("the kept records have reached limit_bytes")
	errReplaced = errors.New("the journal's file was removed or replaced while it was in use; restart the server")
)

// health knows whether appends can be taken. A refusal is decided once and
// then answered from memory, so that a full disk under load costs nothing.
type health struct {
	cfg   Config
	path  string
	file  *os.File
	space spaceFunc

	ledger *ledger
	log    *zap.Logger
	state  atomic.Pointer[refusal]
	sick   atomic.Pointer[fault.Error] // only a restart heals it
}

// spaceFunc is what may still be written to the disk of path, and how large
// that disk is.
type spaceFunc func(path string) (free, size int64, err error)

// refusal is the answer to appends until its reason has gone.
type refusal struct {
	fault *fault.Error
	wrote bool  // writing failed: only a write that succeeds ends it
	need  int64 // and only when that much is free, if that is known
}

// refusal is what appends are answered right now, nil when they are taken.
func (h *health) refusal() error {
	if r := h.state.Load(); r != nil {
		return r.fault
	}
	return nil
}

// broke records that a group of size bytes could not be written.
func (h *health) broke(f *fault.Error, size int) {
	r := &refusal{fault: f, wrote: true}
	if f.Code == errFull.Code {
		r.need = 2 * int64(size)
	}
	h.refuse(r)
}

// fallSick refuses appends until the process is started anew.
func (h *health) fallSick(err error) {
	h.sick.Store(errUnavailable.Because(fmt.Errorf("the disk fails; restart the server when it is well: %w", err)))
	h.look()
}

func (h *health) refuse(r *refusal) {
	if before := h.state.Swap(r); before == nil || before.fault.Code != r.fault.Code {
		h.log.Error("the journal refuses appends", zap.String("code", r.fault.Code), zap.Error(r.fault))
	}
}

// accept ends the refusal r, unless there is a newer one.
func (h *health) accept(r *refusal) {
	if h.state.CompareAndSwap(r, nil) {
		h.log.Info("the journal takes appends again")
	}
}

// look finds what stands in the way of appends. What it found itself is over
// as soon as it is no longer there; a failed write needs a probe, which look
// reports.
func (h *health) look() (probe *refusal) {
	now := h.state.Load()
	if f := h.obstacle(); f != nil {
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
		if free, _, err := h.space(h.path); err == nil && free+h.ledger.reusable() < now.need {
			return nil
		}
	}
	return now
}

// obstacle is a reason to refuse that can be seen without writing.
func (h *health) obstacle() *fault.Error {
	if f := h.sick.Load(); f != nil {
		return f
	}
	if !h.inPlace() {
		return errUnavailable.Because(errReplaced)
	}
	if h.cfg.LimitBytes > 0 && h.ledger.span().bytes() >= h.cfg.LimitBytes {
		return errFull.Because(errOverSize)
	}
	if h.cfg.MinFreeBytes == 0 || h.cfg.MinFreePercent == 0 {
		return nil
	}
	// A system that cannot tell has no guard.
	if free, size, err := h.space(h.path); err == nil && !enough(free, h.ledger.reusable(), h.least(size)) {
		return errFull.Because(errLowSpace)
	}
	return nil
}

// inPlace reports whether the path still names the file that is written to.
func (h *health) inPlace() bool {
	open, err := h.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(h.path)
	return err == nil && os.SameFile(open, named)
}

// least is the free space that the guard asks for on a disk of that size.
func (h *health) least(size int64) int64 {
	return min(h.cfg.MinFreeBytes, int64(float64(size)*h.cfg.MinFreePercent/100))
}

// enough says whether the disk leaves room. Space within the file that trimmed
// records have left counts too, because appends use it first; an eighth must
// be on the disk itself, for the write-ahead log.
func enough(free, reusable, least int64) bool {
	return free >= least || free >= least/8 && free+reusable >= least
}

// watch looks at the disk until ctx ends, and tries to write again after a
// failure.
func (h *health) watch(ctx context.Context, probe func() error) {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r := h.look(); r != nil && probe() == nil {
			h.accept(r)
		}
	}
}

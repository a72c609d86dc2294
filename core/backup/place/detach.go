package place

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// ErrStalled is the error of a place that accepts no data for too long.
var ErrStalled = errors.New("the place of the backup does not respond")

// Bounds of a detached file.
const (
	chunkBytes    = 256 << 10
	chunks        = 4                // in memory
	createTimeout = 30 * time.Second // of Place.Create
	abortWait     = 5 * time.Second  // for the removal of what was written
)

// CreateDetached begins a file whose place cannot delay the caller: each call returns
// when ctx ends, or with ErrStalled when the place accepts no data for the time stall.
// A goroutine writes to the place and has at most 1 MiB that is not written. If a
// call of the system hangs, such as that of a network file system, the goroutine ends
// with the call, and removes what was written then.
func CreateDetached(ctx context.Context, p Place, name string, estimate int64, stall time.Duration) (File, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	d := &detached{
		ctx: ctx, cancel: cancel, stall: stall, path: p.Path(name),
		created: make(chan struct{}), work: make(chan []byte, chunks), free: make(chan []byte, chunks), done: make(chan struct{}),
	}
	for range chunks {
		d.free <- nil
	}
	go d.run(p, name, estimate)
	if err := d.wait(d.created, min(stall, createTimeout)); err != nil {
		d.Abort()
		return nil, err
	}
	return d, nil
}

// CallDetached calls fn in a goroutine. It returns when ctx ends, or with ErrStalled
// after the time limit, also while fn hangs in the system.
func CallDetached[T any](ctx context.Context, p Place, limit time.Duration, fn func(context.Context) (T, error)) (out T, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s: %w for %s", p.Path(""), ErrStalled, limit))
	defer cancel()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := fn(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		if r.err != nil && ctx.Err() != nil {
			r.err = context.Cause(ctx)
		}
		return r.value, r.err
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
}

// detached is a file that a goroutine writes.
type detached struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stall   time.Duration
	path    string
	created chan struct{} // closed when the file exists
	work    chan []byte   // chunks to write; closed by Commit and Abort
	free    chan []byte
	done    chan struct{} // closed when the goroutine ends
	err     error         // the result of the goroutine, after done
	current []byte
}

func (d *detached) run(p Place, name string, estimate int64) {
	defer close(d.done)
	runtime.LockOSThread() // the thread keeps its priority and ends with the goroutine
	LowerPriority()
	f, err := p.Create(d.ctx, name, estimate)
	if err != nil {
		d.err = err
		return
	}
	close(d.created)
	for chunk := range d.work {
		if d.ctx.Err() == nil {
			_, d.err = f.Write(chunk)
		}
		if d.err != nil || d.ctx.Err() != nil {
			break
		}
		d.free <- chunk[:0]
	}
	switch {
	case d.err != nil:
		f.Abort()
	case d.ctx.Err() != nil:
		d.err = context.Cause(d.ctx)
		f.Abort()
	default:
		d.err = f.Commit(d.ctx)
	}
}

// Write implements io.Writer.
func (d *detached) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if d.current == nil {
			if d.current, err = d.nextChunk(); err != nil {
				return n, err
			}
		}
		part := p[:min(len(p), chunkBytes-len(d.current))]
		d.current, p, n = append(d.current, part...), p[len(part):], n+len(part)
		if len(d.current) == chunkBytes {
			d.flush()
		}
	}
	return n, nil
}

// flush passes the current chunk to the goroutine. There are not more chunks than
// work has room for.
func (d *detached) flush() {
	d.work <- d.current
	d.current = nil
}

func (d *detached) nextChunk() ([]byte, error) {
	timer := time.NewTimer(d.stall)
	defer timer.Stop()
	select {
	case chunk := <-d.free:
		if chunk == nil {
			chunk = make([]byte, 0, chunkBytes)
		}
		return chunk, nil
	case <-d.done:
		return nil, d.err
	case <-d.ctx.Done():
		return nil, context.Cause(d.ctx)
	case <-timer.C:
		return nil, d.stalled(d.stall)
	}
}

// wait waits for ch or the end of the goroutine, whose error it returns.
func (d *detached) wait(ch <-chan struct{}, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ch:
		return nil
	case <-d.done:
		return d.err
	case <-timer.C:
		return d.stalled(limit)
	case <-d.ctx.Done():
	}
	select {
	case <-d.done: // both at once
		return d.err
	default:
		return context.Cause(d.ctx)
	}
}

// stalled ends the file.
func (d *detached) stalled(after time.Duration) error {
	err := fmt.Errorf("%s: %w for %s", d.path, ErrStalled, after)
	d.cancel(err)
	return err
}

// Commit implements File.
func (d *detached) Commit(context.Context) error {
	if len(d.current) > 0 {
		d.flush()
	}
	close(d.work)
	err := d.wait(nil, d.stall)
	d.cancel(err)
	return err
}

// Abort implements File. It waits some seconds for the removal.
func (d *detached) Abort() {
	d.cancel(errAborted)
	close(d.work)
	timer := time.NewTimer(abortWait)
	defer timer.Stop()
	select {
	case <-d.done:
	case <-timer.C:
	}
}

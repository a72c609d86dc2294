package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// instance is one configured value of any kind. use is held for reading by work
// and for writing by whatever replaces the value, so that Open and Close never
// run beside it.
type instance struct {
	id   string
	kind kind
	log  *slog.Logger
	sent *sentMemory // what a notifier has delivered; it outlives the value

	use    sync.RWMutex
	config *pluginv1.Config
	value  value         // nil before Open
	slots  chan struct{} // one for each call of the value that may run

	state      sync.Mutex // what Health reads; never held during a call
	status     pluginv1.InstanceHealth_Status
	since      time.Time
	lastError  *Error
	generation uint64
}

func newInstance(id string, k kind) *instance {
	in := &instance{id: id, kind: k, log: logger.With("instance", id), sent: newSentMemory()}
	in.setStatus(pluginv1.InstanceHealth_STATUS_STARTING, nil)
	return in
}

func (in *instance) setStatus(status pluginv1.InstanceHealth_Status, err *Error) {
	in.state.Lock()
	defer in.state.Unlock()
	if in.status != status {
		in.status, in.since = status, time.Now()
	}
	in.lastError = err
}

func (in *instance) health(draining bool) *pluginv1.InstanceHealth {
	in.state.Lock()
	defer in.state.Unlock()
	status := in.status
	if draining {
		status = pluginv1.InstanceHealth_STATUS_DRAINING
	}
	return &pluginv1.InstanceHealth{
		InstanceId: in.id, Status: status, Error: errorToProto(in.lastError),
		SinceUs: in.since.UnixMicro(), Generation: in.generation,
	}
}

// build makes a value with the given config, or returns diagnostics.
func (in *instance) build(config *pluginv1.Config) (value, []*pluginv1.Diagnostic) {
	v := in.kind.make()
	if c, ok := v.author().(Configured); ok {
		if problems := decodeConfig(config, c.Config()); len(problems) > 0 {
			return nil, problems
		}
	} else if problems := decodeConfig(config, &struct{}{}); len(problems) > 0 {
		return nil, problems
	}
	if c, ok := v.author().(Validator); ok {
		if err := guard(in.log, c.Validate); err != nil {
			return nil, diagnosticsOf(err)
		}
	}
	return v, nil
}

// diagnosticsOf turns what Validate returned into diagnostics.
func diagnosticsOf(err error) []*pluginv1.Diagnostic {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*pluginv1.Diagnostic
		for _, one := range joined.Unwrap() {
			out = append(out, diagnosticsOf(one)...)
		}
		return out
	}
	d := &pluginv1.Diagnostic{Severity: pluginv1.Diagnostic_SEVERITY_ERROR, Summary: err.Error()}
	if e, ok := errors.AsType[*Error](err); ok {
		d.Pointer, d.Summary = e.Pointer, e.Message
	}
	return []*pluginv1.Diagnostic{d}
}

// openAs connects an instance of type V: connect opens the author's value and
// returns the number of its concurrent calls. A value that was open is closed
// first: each is opened once in its life.
func openAs[V value](ctx context.Context, in *instance, connect func(V) (slots int, err error)) error {
	in.use.Lock()
	defer in.use.Unlock()
	if err := in.closeLocked(ctx); err != nil {
		in.log.Warn("close before reopening failed", "error", err.Error())
	}
	built, problems := in.build(in.config)
	if len(problems) > 0 {
		return &Error{Class: ClassConfig, Code: "config", Message: problems[0].Summary, Pointer: problems[0].Pointer}
	}
	v, ok := built.(V)
	if !ok {
		return in.wrongKind()
	}
	slots := 1
	err := guard(in.log, func() (err error) {
		slots, err = connect(v)
		return err
	})
	if err != nil {
		in.setStatus(pluginv1.InstanceHealth_STATUS_FAILED, AsError(err))
		if closeErr := guard(in.log, func() error { return v.Close(ctx) }); closeErr != nil {
			in.log.Debug("close after a failed open", "error", closeErr.Error())
		}
		return err
	}
	in.value, in.slots = v, make(chan struct{}, max(1, slots))
	in.setStatus(pluginv1.InstanceHealth_STATUS_READY, nil)
	return nil
}

// with runs fn on the open value, however many calls are under way.
func with[V value](in *instance, fn func(V) error) error {
	in.use.RLock()
	defer in.use.RUnlock()
	if in.value == nil {
		return &Error{Class: ClassNotConnected, Code: "not_open", Message: "the instance is not open", Source: SourcePlugin}
	}
	v, ok := in.value.(V)
	if !ok {
		return in.wrongKind()
	}
	return guard(in.log, func() error { return fn(v) })
}

// work is with, for as many calls at a time as the value allows. A call whose
// deadline passes while it waits has done nothing.
func work[V value](ctx context.Context, in *instance, fn func(V) error) error {
	return with(in, func(v V) error {
		if busy := in.slot(ctx); busy != nil {
			return busy
		}
		defer in.release()
		return fn(v)
	})
}

// slot waits for the turn of one call of the value; release ends it. Both are
// for what runs inside with.
func (in *instance) slot(ctx context.Context) error {
	select {
	case in.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &Error{Class: ClassTransient, Code: "busy", Message: "earlier calls are still running", Source: SourcePlugin}
	}
}

func (in *instance) release() { <-in.slots }

func (in *instance) wrongKind() error {
	return Errorf(ClassInternal, "wrong_kind", "instance %q is a %s", in.id, in.kind.name)
}

func (in *instance) check(ctx context.Context) error {
	return work(ctx, in, func(v value) error {
		if c, ok := v.author().(Checker); ok {
			return c.Check(ctx)
		}
		return nil
	})
}

func (in *instance) close(ctx context.Context) error {
	in.use.Lock()
	defer in.use.Unlock()
	return in.closeLocked(ctx)
}

func (in *instance) closeLocked(ctx context.Context) error {
	v := in.value
	in.value = nil
	if v == nil {
		return nil
	}
	in.setStatus(pluginv1.InstanceHealth_STATUS_STARTING, nil)
	return guard(in.log, func() error { return v.Close(ctx) })
}

// context adds the instance's logger, which names the trace if there is one.
func (in *instance) context(ctx context.Context) context.Context {
	log := in.log
	if parent := TraceParent(ctx); len(parent) >= 35 { // 00-<32 digits>-…
		log = log.With("trace_id", parent[3:35])
	}
	return context.WithValue(ctx, logKey{}, log)
}

// guard turns a panic of the author's code into an INTERNAL error.
func guard(log *slog.Logger, fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("panic", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = &Error{Class: ClassInternal, Code: "panic", Message: fmt.Sprint(r), Source: SourcePlugin}
		}
	}()
	return fn()
}

// sameConfig reports whether two configs are equal.
func sameConfig(a, b *pluginv1.Config) bool {
	return string(a.GetConfigJson()) == string(b.GetConfigJson()) && reflect.DeepEqual(a.GetSecrets(), b.GetSecrets())
}

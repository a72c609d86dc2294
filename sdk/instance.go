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

// instance is one configured sink. use is held for reading by work and for
// writing by whatever replaces the sink, so that Open and Close never run
// beside a Write.
type instance struct {
	id   string
	make func() Sink
	log  *slog.Logger

	use    sync.RWMutex
	config *pluginv1.Config
	sink   Sink          // nil before Open
	slots  chan struct{} // one for each Write that may run

	state      sync.Mutex // what Health reads; never held during a call
	status     pluginv1.InstanceHealth_Status
	since      time.Time
	lastError  *Error
	generation uint64
}

func newInstance(id string, factory func() Sink) *instance {
	in := &instance{id: id, make: factory, log: logger.With("instance", id)}
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

// build makes a sink with the given config. The diagnostics say why it cannot.
func (in *instance) build(config *pluginv1.Config) (Sink, []*pluginv1.Diagnostic) {
	sink := in.make()
	if c, ok := sink.(Configured); ok {
		if problems := decodeConfig(config, c.Config()); len(problems) > 0 {
			return nil, problems
		}
	} else if problems := decodeConfig(config, &struct{}{}); len(problems) > 0 {
		return nil, problems
	}
	if v, ok := sink.(Validator); ok {
		if err := guard(in.log, v.Validate); err != nil {
			return nil, diagnosticsOf(err)
		}
	}
	return sink, nil
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

// open connects. A sink that was open is closed first: each value is opened
// once in its life.
func (in *instance) open(ctx context.Context, through uint64) (SinkProperties, error) {
	in.use.Lock()
	defer in.use.Unlock()
	if err := in.closeLocked(ctx); err != nil {
		in.log.Warn("close before reopening failed", "error", err.Error())
	}
	sink, problems := in.build(in.config)
	if len(problems) > 0 {
		return SinkProperties{}, &Error{Class: ClassConfig, Code: "config", Message: problems[0].Summary, Pointer: problems[0].Pointer}
	}
	var props SinkProperties
	err := guard(in.log, func() (err error) {
		props, err = sink.Open(ctx, OpenRequest{Instance: in.id, CommittedThrough: through})
		return err
	})
	if err != nil {
		in.setStatus(pluginv1.InstanceHealth_STATUS_FAILED, AsError(err))
		if closeErr := guard(in.log, func() error { return sink.Close(ctx) }); closeErr != nil {
			in.log.Debug("close after a failed open", "error", closeErr.Error())
		}
		return SinkProperties{}, err
	}
	props.MaxInFlight = max(1, props.MaxInFlight)
	in.sink, in.slots = sink, make(chan struct{}, props.MaxInFlight)
	in.setStatus(pluginv1.InstanceHealth_STATUS_READY, nil)
	return props, nil
}

// work runs fn on the open sink, at most MaxInFlight at a time. A call whose
// deadline passes while it waits has done nothing.
func (in *instance) work(ctx context.Context, fn func(Sink) error) error {
	in.use.RLock()
	defer in.use.RUnlock()
	if in.sink == nil {
		return &Error{Class: ClassNotConnected, Code: "not_open", Message: "the instance is not open", Source: SourcePlugin}
	}
	select {
	case in.slots <- struct{}{}:
		defer func() { <-in.slots }()
	case <-ctx.Done():
		return &Error{Class: ClassTransient, Code: "busy", Message: "earlier calls are still running", Source: SourcePlugin}
	}
	return guard(in.log, func() error { return fn(in.sink) })
}

func (in *instance) check(ctx context.Context) error {
	return in.work(ctx, func(sink Sink) error {
		if c, ok := sink.(Checker); ok {
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
	sink := in.sink
	in.sink = nil
	if sink == nil {
		return nil
	}
	in.setStatus(pluginv1.InstanceHealth_STATUS_STARTING, nil)
	return guard(in.log, func() error { return sink.Close(ctx) })
}

// context adds the instance's logger.
func (in *instance) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, logKey{}, in.log)
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

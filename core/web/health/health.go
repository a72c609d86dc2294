// Package health runs the readiness checks of the features.
//
// All checks run at once and share a deadline; a check that ignores its
// deadline is not waited for. A Report names the failed checks. It shows the
// detail of a fault and hides the text of any other error, which may contain
// addresses.
package health

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
)

// checkTimeout bounds one readiness check.
const checkTimeout = 2 * time.Second

// Readiness holds the checks of the server. Registration is for one goroutine
// and before the first Report; Report may be called concurrently.
type Readiness struct {
	log      *zap.Logger
	checks   []check
	fields   []field
	stopping atomic.Bool
}

// check is a condition of readiness.
type check struct {
	name string
	run  func(ctx context.Context) error
}

// field is an additional field of a report.
type field struct {
	name  string
	value func() any
}

// New returns a Readiness without checks, which is ready.
func New(log *zap.Logger) *Readiness { return &Readiness{log: log} }

// AddCheck adds a condition.
func (r *Readiness) AddCheck(name string, run func(ctx context.Context) error) {
	r.checks = append(r.checks, check{name, run})
}

// AddField adds a field to every report. value must not block.
func (r *Readiness) AddField(name string, value func() any) {
	r.fields = append(r.fields, field{name, value})
}

// SetStopping makes every later report not ready.
func (r *Readiness) SetStopping() { r.stopping.Store(true) }

// Ready runs all checks and returns the failures by name; none means ready.
func (r *Readiness) Ready(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	failed := r.runChecks(ctx)
	if r.stopping.Load() {
		failed["server"] = "stopping"
	}
	return failed
}

// Degradable is the value of a field that can report damage. The status of a
// server that is ready is "degraded" while one does: it serves, and an operator
// has to act.
type Degradable interface{ Degraded() bool }

// Report runs all checks and returns the status, the failures and the fields as
// a JSON object, and whether the server is ready.
func (r *Readiness) Report(ctx context.Context) (report map[string]any, ready bool) {
	failed := r.Ready(ctx)
	report = make(map[string]any, len(r.fields)+2)
	status := "ready"
	for _, f := range r.fields {
		value := f.value()
		if d, ok := value.(Degradable); ok && d.Degraded() {
			status = "degraded"
		}
		report[f.name] = value
	}
	if len(failed) == 0 {
		report["status"] = status
		return report, true
	}
	report["status"], report["not_ready"] = "not ready", failed
	return report, false
}

// runChecks runs all checks concurrently and returns the failures by name.
func (r *Readiness) runChecks(ctx context.Context) map[string]string {
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		out = map[string]string{}
	)
	for _, k := range r.checks {
		wg.Go(func() {
			err := r.runCheck(ctx, k)
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[k.name] = "not available"
			if f := fault.From(err); f != nil && f.Detail != "" {
				out[k.name] = f.Detail
			} else if errors.Is(err, context.DeadlineExceeded) {
				out[k.name] = "no answer in time"
			}
		})
	}
	wg.Wait()
	return out
}

// runCheck runs one check. It does not wait for a check that ignores its
// deadline.
func (r *Readiness) runCheck(ctx context.Context, k check) error {
	result := make(chan error, 1)
	go func() { result <- k.run(ctx) }()
	select {
	case err := <-result:
		if err != nil {
			r.log.Warn("readiness check failed", zap.String("check", k.name), zap.Error(err))
		}
		return err
	case <-ctx.Done():
		r.log.Warn("readiness check timed out", zap.String("check", k.name))
		return ctx.Err()
	}
}

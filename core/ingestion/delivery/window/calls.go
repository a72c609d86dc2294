package window

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// maxShared is the number of calls that may run beside each other.
const maxShared = 1 << 20

// Calls separates the calls of a plugin process that may crash it from all others, also
// those of other sinks and partitions in the process: a call runs beside other calls, or alone. Calls begin in the order of Begin. The zero
// value is ready to use. Its methods are safe for concurrent use.
//
// It is a semaphore and not a sync.RWMutex, so that a call that waits ends with its
// context.
type Calls struct {
	once sync.Once
	free *semaphore.Weighted
}

// Begin waits until the call may run and returns a function that ends it. It fails
// with the error of ctx.
func (c *Calls) Begin(ctx context.Context, alone bool) (end func(), err error) {
	c.once.Do(func() { c.free = semaphore.NewWeighted(maxShared) })
	weight := int64(1)
	if alone {
		weight = maxShared
	}
	if err := c.free.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return func() { c.free.Release(weight) }, nil
}

// Processes has the Calls of plugin processes. Its methods are safe for concurrent use.
type Processes struct {
	mu    sync.Mutex
	calls map[string]*Calls
}

// Of returns the calls of a process by its name.
func (p *Processes) Of(name string) *Calls {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = map[string]*Calls{}
	}
	if p.calls[name] == nil {
		p.calls[name] = &Calls{}
	}
	return p.calls[name]
}

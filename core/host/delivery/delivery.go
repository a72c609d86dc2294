// Package delivery lists the sinks of a host as deliveries use them: with their delivery
// sections, and with sessions of their own for each partition of a shared log.
package delivery

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
)

// Instance is a sink of a host, or its session for a partition.
type Instance interface {
	Name() string
	Properties() sdk.SinkProperties
	Ready(ctx context.Context) error
	Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error)
	Flush(ctx context.Context, reason sdk.FlushReason, upTo uint64) (sdk.FlushResult, error)
	Resume(committedThrough uint64)
	Session() uint64
	ForgiveExits()
	Process() string
}

var (
	_ Instance = (*host.SinkInstance)(nil)
	_ Instance = (*host.SinkPartition)(nil)
)

// Sink is an Instance with its delivery section. A sink whose section changes is another
// Sink.
type Sink struct {
	Instance
	section settings.Delivery
	err     error
}

// Delivery returns the delivery section with references resolved, or why they cannot
// be resolved.
func (s *Sink) Delivery() (settings.Delivery, error) { return s.section, s.err }

// equal reports whether two sinks are the same instance with the same section.
func (s *Sink) equal(o *Sink) bool {
	return s.Instance == o.Instance && reflect.DeepEqual(s.section, o.section) && fmt.Sprint(s.err) == fmt.Sprint(o.err)
}

// Sinks lists the sinks of a host with their delivery sections. Its methods are safe for
// concurrent use.
type Sinks struct {
	host      *host.Host
	partition int // -1: of a journal of one node

	mu    sync.Mutex
	last  map[string]*Sink // by name
	parts map[*host.SinkInstance]*host.SinkPartition
}

// New returns the sinks of h.
func New(h *host.Host) *Sinks { return &Sinks{host: h, partition: -1} }

// Partition returns the sinks with sessions for a partition of a shared log.
func (s *Sinks) Partition(number int) *Sinks {
	return &Sinks{host: s.host, partition: number, parts: map[*host.SinkInstance]*host.SinkPartition{}}
}

// Changed returns a channel that is closed when the set of sinks changes, or the delivery
// section of one of them.
func (s *Sinks) Changed() <-chan struct{} { return s.host.Changed() }

// List returns the configured sinks. A sink that has not changed is the same pointer as
// in the call before.
func (s *Sinks) List() []*Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*Sink
	next := map[string]*Sink{}
	for _, one := range s.host.Sinks() {
		sink := &Sink{Instance: s.instanceOf(one)}
		sink.section, sink.err = s.host.Delivery(one.Name())
		if last := s.last[one.Name()]; last != nil && last.equal(sink) {
			sink = last
		}
		out, next[one.Name()] = append(out, sink), sink
	}
	s.last = next
	return out
}

// instanceOf returns the instance that is written to. s.mu is held.
func (s *Sinks) instanceOf(one *host.SinkInstance) Instance {
	if s.partition < 0 {
		return one
	}
	if s.parts[one] == nil {
		s.parts[one] = one.Partition(s.partition)
	}
	return s.parts[one]
}

// Close closes the sessions of a partition, when no call is running.
func (s *Sinks) Close(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var closing sync.WaitGroup
	for _, p := range s.parts {
		closing.Go(func() { p.Close(ctx) })
	}
	closing.Wait()
}

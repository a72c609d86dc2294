package app

import (
	"context"

	"github.com/guidonhq/guidon/core/host"
	hostdelivery "github.com/guidonhq/guidon/core/host/delivery"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
)

// sinks binds delivery to the sinks of the host.
type sinks struct{ host *hostdelivery.Sinks }

func newSinks(h *host.Host) sinks { return sinks{hostdelivery.New(h)} }

// Sinks returns the configured sinks.
func (s sinks) Sinks() []delivery.Sink {
	list := s.host.List()
	out := make([]delivery.Sink, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// Changed returns a channel that is closed when the set of sinks changes.
func (s sinks) Changed() <-chan struct{} { return s.host.Changed() }

// Partition implements bypartition.Sinks.
func (s sinks) Partition(number int) (delivery.Sinks, func(ctx context.Context)) {
	p := sinks{s.host.Partition(number)}
	return p, p.host.Close
}

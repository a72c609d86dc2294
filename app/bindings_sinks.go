package app

import (
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
)

// sinks binds delivery to the sinks of the host.
type sinks struct{ *host.DeliverySinks }

func newSinks(h *host.Host) sinks { return sinks{host.NewDeliverySinks(h)} }

// Sinks returns the configured sinks.
func (s sinks) Sinks() []delivery.Sink {
	list := s.List()
	out := make([]delivery.Sink, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

package app

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/guidonhq/guidon/core/ingestion/delivery"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/settings"
)

// sinks provides delivery with the sink instances of the host, each with its
// delivery section.
type sinks struct {
	*host.Host

	mu   sync.Mutex
	made map[string]*sink
}

// sink is an instance with its delivery section. An instance whose section changes
// becomes another sink, so that its delivery restarts from its cursor.
type sink struct {
	*host.SinkInstance
	section settings.Delivery
	problem error
}

func newSinks(h *host.Host) *sinks { return &sinks{Host: h, made: make(map[string]*sink)} }

// Sinks returns the configured sinks; one that has not changed is the same.
func (s *sinks) Sinks() []delivery.Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	instances := s.Host.Sinks()
	out := make([]delivery.Sink, len(instances))
	made := make(map[string]*sink, len(instances))
	for i, instance := range instances {
		fresh := &sink{SinkInstance: instance}
		fresh.section, fresh.problem = s.Delivery(instance.Name())
		old := s.made[instance.Name()]
		if old != nil && old.SinkInstance == instance && reflect.DeepEqual(old.section, fresh.section) &&
			fmt.Sprint(old.problem) == fmt.Sprint(fresh.problem) {
			fresh = old
		}
		out[i], made[instance.Name()] = fresh, fresh
	}
	s.made = made
	return out
}

// Delivery returns the sink's delivery section.
func (s *sink) Delivery() (settings.Delivery, error) { return s.section, s.problem }

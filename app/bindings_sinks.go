package app

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/ingestion"
)

// sinks shows delivery the instances the host runs, each with what the operator
// wants of its delivery.
type sinks struct {
	*host.Host

	mu   sync.Mutex
	made map[string]*sink
}

// sink is an instance with its delivery section. One whose section changes
// becomes another sink, and its delivery begins anew where it is.
type sink struct {
	*host.SinkInstance
	section settings.Delivery
	problem error
}

func newSinks(h *host.Host) *sinks { return &sinks{Host: h, made: make(map[string]*sink)} }

// Sinks returns the configured sinks; one that has not changed is the same.
func (s *sinks) Sinks() []ingestion.Sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	instances := s.Host.Sinks()
	out := make([]ingestion.Sink, len(instances))
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

// Delivery is what the operator wants of the delivery to this sink.
func (s *sink) Delivery() (ingestion.SinkConfig, error) {
	d := s.section
	out := ingestion.SinkConfig{
		Batch:    ingestion.BatchConfig(d.Batch),
		Events:   ingestion.EventFilter(d.Events),
		Projects: ingestion.ProjectFilter(d.Projects),
		Sample:   d.Sample,
		Redact:   ingestion.RedactConfig(d.Redact),
		Retry:    ingestion.RetryConfig(d.Retry),
		Staged:   ingestion.StagedConfig(d.Staged),
	}
	for i, filter := range d.Properties {
		raw, err := json.Marshal(filter)
		if err != nil {
			return out, fmt.Errorf("delivery.properties[%d]: %w", i, err)
		}
		out.Properties = append(out.Properties, raw)
	}
	return out, s.problem
}

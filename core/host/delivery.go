package host

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/settings"
)

// Delivery returns the current delivery section of an instance with references resolved.
// It is the zero value for an unknown name. It fails when a reference cannot be
// resolved, and when the references of the hash key are empty.
func (h *Host) Delivery(name string) (settings.Delivery, error) {
	for _, c := range h.settings().Instances {
		if c.Name != name {
			continue
		}
		d := c.Delivery
		key, _, err := secret.Expand(d.Redact.HashKey)
		switch {
		case err != nil:
			return d, fmt.Errorf("delivery.redact.hash_key: %w", err)
		case key == "" && d.Redact.HashKey != "": // hashes without a key can be guessed
			return d, fmt.Errorf("delivery.redact.hash_key: the value of %s is empty", d.Redact.HashKey)
		}
		d.Redact.HashKey = key
		return d, nil
	}
	return settings.Delivery{}, nil
}

// DeliverySink is a sink with its delivery section, for delivery. A sink whose section
// changes is another DeliverySink.
type DeliverySink struct {
	*SinkInstance
	section settings.Delivery
	err     error
}

// Delivery returns the delivery section with references resolved, or why they cannot
// be resolved.
func (s *DeliverySink) Delivery() (settings.Delivery, error) { return s.section, s.err }

// equal reports whether two sinks are the same instance with the same section.
func (s *DeliverySink) equal(o *DeliverySink) bool {
	return s.SinkInstance == o.SinkInstance && reflect.DeepEqual(s.section, o.section) && fmt.Sprint(s.err) == fmt.Sprint(o.err)
}

// DeliverySinks lists the sinks of a Host with their delivery sections. Its methods are
// safe for concurrent use.
type DeliverySinks struct {
	*Host

	mu   sync.Mutex
	last map[string]*DeliverySink // by name
}

// NewDeliverySinks returns the sinks of h.
func NewDeliverySinks(h *Host) *DeliverySinks { return &DeliverySinks{Host: h} }

// List returns the configured sinks. A sink that has not changed is the same pointer as
// in the call before.
func (d *DeliverySinks) List() []*DeliverySink {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []*DeliverySink
	next := map[string]*DeliverySink{}
	for _, instance := range d.Sinks() {
		sink := &DeliverySink{SinkInstance: instance}
		sink.section, sink.err = d.Delivery(instance.Name())
		if last := d.last[instance.Name()]; last != nil && last.equal(sink) {
			sink = last
		}
		out, next[instance.Name()] = append(out, sink), sink
	}
	d.last = next
	return out
}

// sameDeliveries reports whether the delivery sections of two configurations are equal.
func sameDeliveries(a, b settings.Config) bool {
	sections := func(c settings.Config) map[string]settings.Delivery {
		out := make(map[string]settings.Delivery, len(c.Instances))
		for _, i := range c.Instances {
			out[i.Name] = i.Delivery
		}
		return out
	}
	return reflect.DeepEqual(sections(a), sections(b))
}

// deliveriesHaveReferences reports whether the delivery section of an instance has a
// reference, whose value a reload reads again.
func deliveriesHaveReferences(c settings.Config) bool {
	return slices.ContainsFunc(c.Instances, func(i settings.Instance) bool { return strings.Contains(i.Delivery.Redact.HashKey, "${") })
}

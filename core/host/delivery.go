package host

import (
	"fmt"
	"reflect"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/settings"
)

// Delivery returns the current delivery section of an instance with references resolved.
// It is the zero value for an unknown name. It fails when a reference cannot be
// resolved.
func (h *Host) Delivery(name string) (settings.Delivery, error) {
	for _, c := range h.settings().Instances {
		if c.Name != name {
			continue
		}
		d := c.Delivery
		key, _, err := secret.Expand(d.Redact.HashKey)
		if err != nil {
			return d, fmt.Errorf("delivery.redact.hash_key: %w", err)
		}
		d.Redact.HashKey = key
		return d, nil
	}
	return settings.Delivery{}, nil
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

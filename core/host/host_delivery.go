package host

import (
	"fmt"
	"github.com/guidonhq/guidon/core/host/settings"
	"reflect"
)

// Delivery returns the delivery section of an instance, as the config of the
// moment has it, with references resolved. It is the zero value for a name that
// is not configured, and fails when a reference leads nowhere.
func (h *Host) Delivery(name string) (settings.Delivery, error) {
	for _, c := range h.config().Instances {
		if c.Name != name {
			continue
		}
		d := c.Delivery
		key, _, err := expand(d.Redact.HashKey)
		if err != nil {
			return d, fmt.Errorf("delivery.redact.hash_key: %w", err)
		}
		d.Redact.HashKey = key
		return d, nil
	}
	return settings.Delivery{}, nil
}

// sameDeliveries reports whether two configs deliver alike.
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

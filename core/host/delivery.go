package host

import (
	"fmt"

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

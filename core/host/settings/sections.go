package settings

import (
	"reflect"
	"slices"
	"strings"
)

// SameDeliveries reports whether the delivery sections of two configurations are equal.
func (c Config) SameDeliveries(o Config) bool {
	sections := func(c Config) map[string]Delivery {
		out := make(map[string]Delivery, len(c.Instances))
		for _, i := range c.Instances {
			out[i.Name] = i.Delivery
		}
		return out
	}
	return reflect.DeepEqual(sections(c), sections(o))
}

// DeliveriesHaveReferences reports whether the delivery section of an instance has a
// reference, whose value a reload reads again.
func (c Config) DeliveriesHaveReferences() bool {
	return slices.ContainsFunc(c.Instances, func(i Instance) bool { return strings.Contains(i.Delivery.Redact.HashKey, "${") })
}

// ProcessName names the process of an instance. Instances with another name never share
// one; those with the same may.
func (i Instance) ProcessName() string {
	if i.Isolated {
		return i.Use + " " + i.Name
	}
	return i.Use
}

package stage

import (
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/geoip/location"
	"github.com/guidonhq/guidon/core/persons/properties"
)

// fitLocation makes an update that copies a location replace the old one of o as a
// whole, and keeps the first location of o.
func (u *update) fitLocation(o *properties.Object) {
	if slices.ContainsFunc(o.Members, func(m properties.Member) bool { return strings.HasPrefix(m.Key, initialLocation) }) {
		u.once = slices.DeleteFunc(u.once, func(c change) bool { return strings.HasPrefix(c.key, initialLocation) })
	}
	for _, name := range location.Names {
		if o.Has(name) && !slices.ContainsFunc(u.set, func(c change) bool { return c.key == name }) {
			u.stale = append(u.stale, name)
		}
	}
}

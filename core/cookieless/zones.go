package cookieless

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxZones bounds the names of zones that are kept; there are about 600.
const maxZones = 2000

// zones finds time zones by name without reading files again. The zero value is
// ready to use.
type zones struct {
	byName sync.Map // to *time.Location
	count  atomic.Int32
}

// find returns the zone of a name: UTC for an empty or unknown one. It keeps a copy of the
// name, which may be in the memory of a request that is used again.
func (z *zones) find(name string) *time.Location {
	if name == "" || name == "Local" || len(name) > 64 {
		return time.UTC
	}
	if known, ok := z.byName.Load(name); ok {
		return known.(*time.Location)
	}
	if z.count.Add(1) > maxZones {
		z.count.Add(-1)
		return time.UTC
	}
	name = strings.Clone(name)
	zone, err := time.LoadLocation(name)
	if err != nil {
		z.count.Add(-1) // unknown names of a client must not use up the room of known ones
		return time.UTC
	}
	z.byName.Store(name, zone)
	return zone
}

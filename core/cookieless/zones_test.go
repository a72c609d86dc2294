package cookieless

import (
	"testing"
	"unsafe"
)

// TestZonesKeepNoMemoryOfRequests finds zones by names in one buffer, as requests have them:
// each name is found again when the buffer has another.
func TestZonesKeepNoMemoryOfRequests(t *testing.T) {
	t.Parallel()
	var z zones
	names := []string{"Asia/Tokyo", "Asia/Dubai", "Asia/Seoul", "Asia/Qatar", "Asia/Macau"}
	buffer := make([]byte, len(names[0]))
	for range 200 {
		for _, name := range names {
			copy(buffer, name)
			if zone := z.find(unsafe.String(&buffer[0], len(buffer))); zone.String() != name {
				t.Fatalf("the zone of %s is %s", name, zone)
			}
		}
	}
	if n := z.count.Load(); int(n) != len(names) {
		t.Errorf("%d names are kept, want %d", n, len(names))
	}
}

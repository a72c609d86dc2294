package tail

import (
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/events"
)

// Reads of large events have few rows, reads of small ones grow to pageSize.
func TestPageFollowsTheSize(t *testing.T) {
	t.Parallel()
	var p page
	for _, c := range []struct{ bytes, want int }{{100, pageSize}, {pageBytes / 100, 100}, {1 << 20, firstPage}, {4 << 20, firstPage}, {100, pageSize}} {
		text := strings.Repeat("x", c.bytes)
		for range 10 {
			rows := make([]events.Record, p.limit())
			for i := range rows {
				rows[i].Properties = text
			}
			p.read(rows)
		}
		if p.limit() != c.want {
			t.Errorf("events of %d bytes: %d rows, want %d", c.bytes, p.limit(), c.want)
		}
	}
}

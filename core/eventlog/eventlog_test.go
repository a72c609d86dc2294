package eventlog_test

import (
	"fmt"
	"testing"

	"github.com/guidonhq/guidon/core/eventlog"
)

// TestPartitionOf holds the partitions of some ids: records are where an earlier
// version has put them.
func TestPartitionOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		project int64
		id      string
		n, want int
	}{{1, "ada", 1, 0}, {1, "ada", 12, 5}, {2, "ada", 12, 6}, {1, "", 12, 7}, {1, "ada", 7, 5}} {
		if got := eventlog.PartitionOf(c.project, c.id, c.n); got != c.want {
			t.Errorf("PartitionOf(%d, %q, %d) = %d, want %d", c.project, c.id, c.n, got, c.want)
		}
	}
}

// TestPartitionsAreEven checks that many ids spread evenly.
func TestPartitionsAreEven(t *testing.T) {
	t.Parallel()
	const n, ids = 12, 120_000
	var counts [n]int
	for i := range ids {
		counts[eventlog.PartitionOf(int64(1+i%3), fmt.Sprint("user-", i), n)]++
	}
	for p, count := range counts {
		if count < ids/n*9/10 || count > ids/n*11/10 {
			t.Errorf("partition %d has %d of %d ids", p, count, ids)
		}
	}
}

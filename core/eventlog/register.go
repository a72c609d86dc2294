package eventlog

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

// Register gives a reader a cursor in each partition, unless it has one, without a lease.
// A partition that a node owns is left to it: it registers its readers itself.
func Register(ctx context.Context, log Log, reader string, from journal.Start) error {
	for n := range log.Partitions() {
		if _, err := log.Partition(n, 0).Register(ctx, reader, from); err != nil && !fault.Is(err, fault.Conflict) {
			return fmt.Errorf("register %s in partition %d: %w", reader, n, err)
		}
	}
	return nil
}

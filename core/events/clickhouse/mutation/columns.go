package mutation

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// readColumns returns the expression of the reason of a failure, which versions before 19
// do not have.
func (d *Deleter) readColumns(ctx context.Context) (string, error) {
	d.columnsMu.Lock()
	defer d.columnsMu.Unlock()
	if d.columns != "" {
		return d.columns, nil
	}
	columns := "''"
	err := d.client.Query(ctx, "SELECT name FROM system.columns WHERE database = 'system' AND table = 'mutations'", func(r *wire.Reader) error {
		if name := r.String(); name == "latest_fail_reason" {
			columns = name
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read the columns of system.mutations: %w", err)
	}
	d.columns = columns
	return columns, nil
}

package wire

import (
	"context"
	"fmt"
)

// HasTable reports whether the database has a table.
func (c *Client) HasTable(ctx context.Context, table string) (found bool, err error) {
	err = c.Query(ctx, "SELECT name FROM system.tables WHERE database = currentDatabase() AND name = "+Quote(table), func(r *Reader) error {
		found = r.String() == table
		return nil
	})
	return found, err
}

// EnsureTable makes a table with the statement if it does not exist. A user without the
// right to make tables can use those that an administrator has made.
func (c *Client) EnsureTable(ctx context.Context, table, statement string) error {
	found, err := c.HasTable(ctx, table)
	if err == nil && !found {
		err = c.Exec(ctx, statement, nil, nil)
	}
	if err != nil {
		return fmt.Errorf("create the table %s: %w", table, err)
	}
	return nil
}

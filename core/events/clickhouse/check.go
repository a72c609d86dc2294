package clickhouse

import (
	"context"
	"errors"
	"fmt"
)

// Check compares the version and the tables of the ClickHouse at a URL of events.url with
// those that the store needs. It changes nothing. Tables that are missing are no error: the
// server makes them. It returns the version, or what is wrong.
func Check(ctx context.Context, url string) (version string, err error) {
	c, err := newClient(url)
	if err != nil {
		return "", fmt.Errorf("events.url: %w", err)
	}
	s := &Store{client: c}
	if err := s.readVersion(ctx); err != nil {
		return "", err
	}
	for table, columns := range tables {
		exists := false
		err := c.query(ctx, "SELECT name FROM system.tables WHERE database = currentDatabase() AND name = "+quote(table), func(r *reader) error {
			exists = r.string() == table
			return nil
		})
		if err == nil && exists {
			err = s.checkTable(ctx, table, columns)
		}
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d.%d", s.schema.version[0], s.schema.version[1]), nil
}

// Reached reports whether err is the answer of a ClickHouse, and not the lack of one.
func Reached(err error) bool {
	var answer *serverError
	return errors.As(err, &answer) && answer.reached
}

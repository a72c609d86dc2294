package clickhouse

import (
	"context"
	"errors"
	"fmt"

	"github.com/guidonhq/guidon/core/events/clickhouse/mutation"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// Check compares the version and the tables of the ClickHouse at a URL of events.url with
// those that the store needs, and finds deletions that fail. It changes nothing. Tables that are missing are no error: the
// server makes them. It returns the version, or an error with the cause.
func Check(ctx context.Context, url string) (version string, err error) {
	c, err := wire.New(url)
	if err != nil {
		return "", fmt.Errorf("events.url: %w", err)
	}
	s := &Store{client: c}
	if err := s.readVersion(ctx); err != nil {
		return "", err
	}
	if _, err := s.checkExisting(ctx); err != nil {
		return "", err
	}
	if err := mutation.New(c, eventTable).Check(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d.%d", s.schema.version[0], s.schema.version[1]), nil
}

// checkExisting checks the tables that exist; exist is false if one of them is missing.
func (s *Store) checkExisting(ctx context.Context) (exist bool, err error) {
	exist = true
	for table, columns := range tables {
		found, err := s.client.HasTable(ctx, table)
		if err == nil && found {
			err = s.checkTable(ctx, table, columns)
		}
		if err != nil {
			return false, err
		}
		exist = exist && found
	}
	return exist, nil
}

// Reached reports whether err is the answer of a ClickHouse, and not the lack of one.
func Reached(err error) bool {
	var answer *wire.Error
	return errors.As(err, &answer) && answer.Reached
}

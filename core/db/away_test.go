package db_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
)

func TestAwayMarksUnavailableDatabases(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		err  error
		kind fault.Kind
	}{
		{"a lost connection", driver.ErrBadConn, fault.Unavailable},
		{"out of time", fmt.Errorf("read: %w", context.DeadlineExceeded), fault.Unavailable},
		{"the server is shutting down", &pgconn.PgError{Code: "57P01"}, fault.Unavailable},
		{"a mistake of ours in SQL", &pgconn.PgError{Code: "42601"}, fault.Internal},
		{"any other error", errors.New("nil pointer"), fault.Internal},
		{"one that has a kind keeps it", fault.New(fault.NotFound, "not_found", "Not found.").Because(driver.ErrBadConn), fault.NotFound},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := fault.KindOf(db.Away(c.err)); got != c.kind {
				t.Errorf("kind %d, want %d", got, c.kind)
			}
		})
	}
	if db.Away(nil) != nil {
		t.Error("no error became one")
	}
}

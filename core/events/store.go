package events

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// writer puts events into the table. There is one for each dialect: this is
// the busiest statement of the house.
type writer interface {
	// insert writes the rows that are not there yet, inside the transaction in
	// ctx, and tells for each whether it did.
	insert(ctx context.Context, list []row) ([]bool, error)
	// known tells for each whether it is there, inside the transaction in ctx.
	known(ctx context.Context, ids []identity) ([]bool, error)
}

func newWriter(d *db.DB) writer {
	if d.Postgres() {
		return &writerPostgres{db: d}
	}
	return &writerSQLite{db: d}
}

var errOutside = errors.New("events: storing needs a transaction")

// txOf is the transaction in ctx without bun.
func txOf(ctx context.Context, d *db.DB) *sql.Tx {
	if tx, ok := d.Write(ctx).(bun.Tx); ok {
		return tx.Tx
	}
	return nil
}

// null is s, or NULL when there is none.
func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// storable is s without what a text of Postgres cannot hold. Ingestion lets
// nothing of that kind through; one such event would stop all others.
func storable(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

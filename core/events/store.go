package events

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events/dictionaries"
)

// store reads and changes events other than by writing new ones. Its methods
// join the transaction in their context.
type store struct {
	db           *db.DB
	dictionaries *dictionaries.Store
	shared       *Shared
}

// writer writes events. Each dialect has its own: these are the most frequent
// statements of the server.
type writer interface {
	Insert(ctx context.Context, list []Insertion) ([]bool, error)
	Known(ctx context.Context, ids []Identity) ([]bool, error)
}

func newWriter(d *db.DB) writer {
	if d.Postgres() {
		return &writerPostgres{db: d}
	}
	return &writerSQLite{db: d}
}

var errNoTransaction = errors.New("events: storing needs a transaction")

// txOf is the transaction in ctx without bun.
func txOf(ctx context.Context, d *db.DB) *sql.Tx {
	if tx, ok := d.Write(ctx).(bun.Tx); ok {
		return tx.Tx
	}
	return nil
}

// nullable is s, or NULL for "".
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// storable replaces what a text of Postgres cannot hold. Ingestion rejects such
// texts; this is a safety net, because one such event would block all others.
func storable(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

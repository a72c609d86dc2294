package db_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// Searches that occupy every connection for reading do not delay a lookup.
func TestLookupsDoNotWaitForSearches(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	read, ok := d.Read(t.Context()).(*bun.DB)
	if !ok {
		t.Fatal("no pool for reading")
	}
	var held []*sql.Conn
	for range read.Stats().MaxOpenConnections {
		c, err := read.DB.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var one int
	if err := d.Lookup(ctx).NewRaw("SELECT 1").Scan(ctx, &one); err != nil || one != 1 {
		t.Fatalf("lookup: %d, %v", one, err)
	}
	if err := d.LookupDB().QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lookup(ctx).NewRaw("CREATE TABLE written (id INTEGER)").Exec(ctx); err == nil {
		t.Error("a connection for lookups writes")
	}
}

// In a transaction a lookup reads what the transaction wrote.
func TestLookupsJoinTheTransaction(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	err := d.Tx(t.Context(), func(ctx context.Context) error {
		if _, err := d.Write(ctx).NewRaw("CREATE TABLE written (id INTEGER)").Exec(ctx); err != nil {
			return err
		}
		var n int
		return d.Lookup(ctx).NewRaw("SELECT count(*) FROM written").Scan(ctx, &n)
	})
	if err != nil {
		t.Fatal(err)
	}
}

package db_test

import (
	"context"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

const benchRows = "INSERT INTO organizations (id, name, created_at, updated_at) VALUES ('one', 'One', 1, 1)"

func benchDB(b *testing.B, open func(testing.TB) *db.DB) *db.DB {
	b.Helper()
	d := open(b)
	if _, err := d.Write(b.Context()).ExecContext(b.Context(), benchRows); err != nil {
		b.Fatal(err)
	}
	return d
}

// BenchmarkPointRead shows what each way to one row costs: bun's finished text
// in one round trip, a statement kept prepared, and pgx itself.
func BenchmarkPointRead(b *testing.B) {
	const prepared = "SELECT name FROM organizations WHERE id = $1"
	var name string
	b.Run("sqlite/bun", func(b *testing.B) { bunRead(b, benchDB(b, dbtest.SQLite)) })
	b.Run("sqlite/prepared", func(b *testing.B) {
		stmt, err := benchDB(b, dbtest.SQLite).LookupDB().PrepareContext(b.Context(), prepared)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = stmt.Close() }()
		for b.Loop() {
			if err := stmt.QueryRowContext(b.Context(), "one").Scan(&name); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("postgres/bun", func(b *testing.B) { bunRead(b, benchDB(b, dbtest.Postgres)) })
	b.Run("postgres/pool", func(b *testing.B) {
		d := benchDB(b, dbtest.Postgres)
		for b.Loop() {
			if err := d.Pool().QueryRow(b.Context(), prepared, "one").Scan(&name); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func bunRead(b *testing.B, d *db.DB) {
	var name string
	for b.Loop() {
		err := d.Read(b.Context()).NewSelect().Table("organizations").Column("name").Where("id = ?", "one").Scan(b.Context(), &name)
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTx(b *testing.B) {
	write := func(b *testing.B, d *db.DB) {
		for b.Loop() {
			err := d.Tx(b.Context(), func(ctx context.Context) error {
				_, err := d.Write(ctx).ExecContext(ctx, "UPDATE organizations SET updated_at = updated_at + 1")
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("sqlite", func(b *testing.B) { write(b, benchDB(b, dbtest.SQLite)) })
	b.Run("postgres", func(b *testing.B) { write(b, benchDB(b, dbtest.Postgres)) })
}

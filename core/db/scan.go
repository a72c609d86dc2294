package db

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/guidonhq/guidon/core/db/scan"
)

// Row is a row of Scan.
type Row struct {
	sqlite SQLiteRow
	values [][]byte // of PostgreSQL, in binary format
}

// Int returns an integer or boolean column, 0 for NULL.
func (r *Row) Int(column int) int64 {
	if r.sqlite != nil {
		return r.sqlite.Int(column)
	}
	switch v := r.values[column]; len(v) {
	case 1:
		return int64(v[0])
	case 2:
		return int64(int16(binary.BigEndian.Uint16(v)))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(v)))
	case 8:
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

// Bytes returns a column of text or bytes, nil for NULL. The store owns the
// memory: it is valid until the function of Scan returns and must not be changed.
func (r *Row) Bytes(column int) []byte {
	if r.sqlite != nil {
		return r.sqlite.Bytes(column)
	}
	return r.values[column]
}

// Scan runs queries and calls fn for every row with the number of its query,
// until fn fails. All queries see the same committed state; a transaction in ctx
// is not joined. It is for queries with many rows: database/sql copies every value
// of a row several times, which costs more than the query. If ctx belongs to a scan, it
// sleeps briefly after each millisecond of work, as a scan.Pacer does.
func (d *DB) Scan(ctx context.Context, queries []string, fn func(query int, r *Row) error) error {
	if !d.Postgres() {
		var row Row
		return d.watch.seen(d.scans.Scan(ctx, queries, scan.PacerOf(ctx).Pace, func(query int, r SQLiteRow) error {
			row.sqlite = r
			return fn(query, &row)
		}))
	}
	pacer := scan.PacerOf(ctx)
	opts := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, d.poolOf(ctx), opts, func(tx pgx.Tx) error {
		for i, query := range queries {
			if err := scanPostgres(ctx, tx, query, func(r *Row) error { pacer.Pace(); return fn(i, r) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// scanPostgres reads without preparing a named statement: the text has its
// arguments in it.
func scanPostgres(ctx context.Context, tx pgx.Tx, query string, fn func(*Row) error) error {
	rows, err := tx.Query(ctx, query, pgx.QueryExecModeDescribeExec)
	if err != nil {
		return err
	}
	defer rows.Close()
	for _, f := range rows.FieldDescriptions() {
		// The two formats of texts are the same.
		isText := f.DataTypeOID == pgtype.TextOID || f.DataTypeOID == pgtype.VarcharOID
		if f.Format != pgx.BinaryFormatCode && !isText {
			return fmt.Errorf("column %s has no binary format", f.Name)
		}
	}
	var row Row
	for rows.Next() {
		row.values = rows.RawValues()
		if err := fn(&row); err != nil {
			return err
		}
	}
	return rows.Err()
}

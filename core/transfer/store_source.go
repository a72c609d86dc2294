package transfer

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/uptrace/bun"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events/dictionaries"
)

// source is a SQLite database at one moment: a read transaction.
type source struct {
	db      *db.DB
	tx      bun.Tx
	decoder *dictionaries.Decoder
}

func openSource(ctx context.Context, d *db.DB) (*source, error) {
	tx, err := d.Read(ctx).BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d, err)
	}
	return &source{db: d, tx: tx, decoder: dictionaries.New(d, zap.NewNop()).NewDecoder()}, nil
}

func (s *source) Close() { _ = s.tx.Rollback() } // nothing was written

// sourceTable is a table as SQLite describes it.
type sourceTable struct {
	columns []string
	keys    []string // by which rows are read in order: the rowid, else the primary key
	refers  []reference
}

// reference is a foreign key.
type reference struct {
	parent   string
	from, to []string
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quote(name)
	}
	return strings.Join(quoted, ", ")
}

// tables reads the catalog.
func (s *source) tables(ctx context.Context) (map[string]*sourceTable, error) {
	out := map[string]*sourceTable{}
	err := s.each(ctx, `SELECT t.name, t.wr, c.name, c.pk FROM pragma_table_list AS t, pragma_table_xinfo(t.name) AS c
		WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY t.name, c.cid`,
		func(r *sql.Rows) error {
			var name, column string
			var withoutRowID, key int
			if err := r.Scan(&name, &withoutRowID, &column, &key); err != nil {
				return err
			}
			t := out[name]
			if t == nil {
				t = &sourceTable{}
				out[name] = t
			}
			t.columns = append(t.columns, column)
			if withoutRowID != 0 && key > 0 {
				for len(t.keys) < key {
					t.keys = append(t.keys, "")
				}
				t.keys[key-1] = column
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	for name, t := range out {
		if t.keys == nil {
			t.keys = []string{"rowid"}
		}
		if t.refers, err = s.references(ctx, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *source) references(ctx context.Context, table string) (out []reference, err error) {
	last := -1
	err = s.each(ctx, `SELECT id, "table", "from", "to" FROM pragma_foreign_key_list('`+table+`') ORDER BY id, seq`, func(r *sql.Rows) error {
		var id int
		var parent, from, to string
		if err := r.Scan(&id, &parent, &from, &to); err != nil {
			return err
		}
		if id != last {
			out, last = append(out, reference{parent: parent}), id
		}
		ref := &out[len(out)-1]
		ref.from, ref.to = append(ref.from, from), append(ref.to, to)
		return nil
	})
	return out, err
}

func (s *source) each(ctx context.Context, query string, fn func(*sql.Rows) error, args ...any) (err error) {
	rows, err := s.tx.Tx.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.db, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read %s: %w", s.db, err)
	}
	return nil
}

func (s *source) count(ctx context.Context, table string) (n int64, err error) {
	if err = s.tx.Tx.QueryRowContext(ctx, "SELECT count(*) FROM "+quote(table)).Scan(&n); err != nil {
		err = fmt.Errorf("count the rows of %s: %w", table, err)
	}
	return n, err
}

// number returns the highest number that an identity column has given: also of a row that
// was deleted.
func (s *source) number(ctx context.Context, table, column string) (int64, error) {
	query := "SELECT max(coalesce((SELECT max(" + quote(column) + ") FROM " + quote(table) + "), 0), coalesce((SELECT seq FROM sqlite_sequence WHERE name = '" + table + "'), 0)"
	if table == "events" {
		// Histories of actions are counted up to a row, which may be deleted since.
		query += ", coalesce((SELECT max(last_row) FROM action_history), 0), coalesce((SELECT max(last_row) FROM action_history_days), 0)"
	}
	var n int64
	if err := s.tx.Tx.QueryRowContext(ctx, query+")").Scan(&n); err != nil {
		return 0, fmt.Errorf("read the numbers of %s: %w", table, err)
	}
	return n, nil
}

// identity identifies the installation: it does not change with its content.
func (s *source) identity(ctx context.Context) (string, error) {
	var key string
	if err := s.tx.Tx.QueryRowContext(ctx, "SELECT key FROM erasure_key WHERE id = 1").Scan(&key); err != nil {
		return "", fmt.Errorf("identify %s: %w", s.db, err)
	}
	return identityOf(key), nil
}

// identityOf returns the identity of the installation with a key of erasures, which is
// random. The key cannot be computed from it.
func identityOf(key string) string {
	sum := sha256.Sum256([]byte("data transfer " + key))
	return hex.EncodeToString(sum[:16])
}

// fileState changes with each commit to a SQLite file, if its write-ahead log is empty.
func fileState(ctx context.Context, d *db.DB, file string) (string, error) {
	empty, err := d.TruncateLog(ctx)
	if err != nil {
		return "", err
	}
	if !empty {
		return "", fmt.Errorf("another program reads %s: end it first", d)
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes, changed %d", info.Size(), info.ModTime().UnixNano()), nil
}

// read calls fn for each row of a table behind a position, in the order of its keys, with
// the values of the columns in the order of the plan, or with the error of a row that
// cannot be decoded. The values are valid until fn returns.
func (s *source) read(ctx context.Context, t *tablePlan, after rowKey, fn func(key rowKey, values []any, damaged error) error) error {
	keys := quoteAll(t.keys)
	query := "SELECT " + keys + ", " + quoteAll(t.columnNames()) + " FROM " + quote(t.name)
	if after != nil {
		query += " WHERE (" + keys + ") > (?" + strings.Repeat(", ?", len(after)-1) + ")"
	}
	query += " ORDER BY " + keys
	values := make([]any, len(t.keys)+len(t.columns))
	pointers := make([]any, len(values))
	for i := range values {
		pointers[i] = &values[i]
	}
	decode := s.eventDecoder(t)
	return s.each(ctx, query, func(r *sql.Rows) error {
		if err := r.Scan(pointers...); err != nil {
			return fmt.Errorf("read table %s: %w", t.name, err)
		}
		key, err := newKey(values[:len(t.keys)])
		if err != nil {
			return fmt.Errorf("read table %s: %w", t.name, err)
		}
		row := values[len(t.keys):]
		if err := decode(ctx, row); err != nil {
			return fn(key, row, err)
		}
		return fn(key, row, nil)
	}, after...)
}

// eventDecoder returns a function that replaces compressed properties of an event by their
// text. It does nothing for other tables.
func (s *source) eventDecoder(t *tablePlan) func(context.Context, []any) error {
	if t.name != "events" {
		return func(context.Context, []any) error { return nil }
	}
	names := t.columnNames()
	properties, id, url := slices.Index(names, "properties"), slices.Index(names, "distinct_id"), slices.Index(names, "current_url")
	return func(ctx context.Context, row []any) error {
		if s, ok := row[properties].(string); ok && (s == "" || s[0] >= ' ') {
			return nil // text, without a copy
		}
		stored := textOf(row[properties])
		plain, err := s.decoder.Decode(ctx, stored, textOf(row[id]), textOf(row[url]))
		if err != nil {
			return fmt.Errorf("column properties: %w", err)
		}
		row[properties] = plain
		return nil
	}
}

func textOf(v any) []byte {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case []byte:
		return v
	}
	return nil
}

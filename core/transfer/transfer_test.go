package transfer

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/journal"
)

// A migration that adds a table must say whether a transfer copies it.
func TestEveryTableIsHandled(t *testing.T) {
	t.Parallel()
	handled := map[string]bool{}
	for _, name := range copied {
		if handled[name] {
			t.Errorf("the table %s is in the list twice", name)
		}
		handled[name] = true
	}
	for name := range leftOut {
		if handled[name] {
			t.Errorf("the table %s is copied and left out", name)
		}
		handled[name] = true
	}
	for name := range seeded {
		if !slices.Contains(copied, name) {
			t.Errorf("the seeded table %s is not copied", name)
		}
	}
	exist := map[string]bool{}
	for _, d := range []*db.DB{dbtest.SQLite(t), dbtest.Postgres(t)} {
		for _, name := range tablesOf(t, d) {
			exist[name] = true
			if !handled[name] {
				t.Errorf("%s has the table %s, which guidon migrate-data does not handle: add it to copied or leftOut in tables.go", d, name)
			}
		}
	}
	for name := range handled {
		if !exist[name] {
			t.Errorf("the table %s does not exist", name)
		}
	}
}

// tablesOf returns the tables that the migrations have made.
func tablesOf(t *testing.T, d *db.DB) (out []string) {
	t.Helper()
	query := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
	if d.Postgres() {
		query = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = current_schema()::regnamespace"
	}
	each(t, d, query, func(r *sql.Rows) error {
		var name string
		out = append(out, "")
		err := r.Scan(&name)
		out[len(out)-1] = name
		return err
	})
	return out
}

type rowsType = sql.Rows

// freshPostgres returns a migrated database.
func freshPostgres(t *testing.T) *db.DB { return dbtest.Postgres(t) }

func each(t testing.TB, d *db.DB, query string, fn func(*sql.Rows) error) {
	t.Helper()
	rows, err := d.Read(t.Context()).QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := fn(rows); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// installation is a source with rows in all tables, and an empty target.
type installation struct {
	config Config
	source *db.DB // open beside the transfer
}

func newInstallation(t testing.TB, events int) *installation {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "guidon.db")
	i := &installation{config: Config{From: db.Config{URL: "sqlite:" + path}, DataDir: dir, Journal: journal.DefaultConfig()}}
	i.config.To = db.Config{URL: dbtest.PostgresURL(t)}
	var err error
	if i.source, err = db.Open(t.Context(), i.config.From, dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.source.Close() })
	if err := i.source.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	i.fill(t, events)
	return i
}

// fill inserts rows into every table that is copied.
func (i *installation) fill(t testing.TB, events int) {
	t.Helper()
	src, err := openSource(t.Context(), i.source)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := src.tables(t.Context())
	src.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range copied {
		n := 5
		switch name {
		case "events":
			n = events
		case "event_logs":
			n = 1
		}
		if seeded[name] == "" {
			i.fillTable(t, name, tables[name], n)
		}
	}
}

func (i *installation) fillTable(t testing.TB, name string, table *sourceTable, rows int) {
	t.Helper()
	types := map[string]string{}
	each(t, i.source, "SELECT name, type FROM pragma_table_xinfo('"+name+"')", func(r *sql.Rows) error {
		var column, kind string
		err := r.Scan(&column, &kind)
		types[column] = kind
		return err
	})
	refers := map[string]bool{}
	for _, ref := range table.refers {
		for _, c := range ref.from {
			refers[c] = true
		}
	}
	err := i.source.Tx(t.Context(), func(ctx context.Context) error {
		for row := 1; row <= rows; row++ {
			values := make([]any, len(table.columns))
			for n, c := range table.columns {
				values[n] = exampleValue(name, c, types[c], row, refers[c])
			}
			query := "INSERT INTO " + name + " (" + quoteAll(table.columns) + ") VALUES (?" + strings.Repeat(", ?", len(values)-1) + ")"
			if _, err := i.source.SQLTx(ctx).ExecContext(ctx, query, values...); err != nil {
				return fmt.Errorf("fill %s: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func exampleValue(table, column, kind string, row int, refers bool) any {
	switch {
	case kind == "BOOLEAN":
		return row%2 == 0
	case column == "is_remote_configuration", column == "has_encrypted_payloads":
		return row % 2
	case table == "events" && (column == "uuid" || column == "person_uuid"):
		return []byte(fmt.Sprintf("%016d", row))
	case kind == "BLOB":
		return []byte{0, byte(row), 0xff, byte(row >> 8)}
	case kind == "DOUBLE PRECISION":
		return float64(row) / 3
	case kind == "TEXT" && refers:
		return fmt.Sprintf("id %d", row)
	case kind == "TEXT" && column == "id":
		return fmt.Sprintf("id %d", row)
	case kind == "TEXT":
		return fmt.Sprintf(`{"%s.%s": [%d, "é\u0000\\N	"]}`, table, column, row)
	}
	return row
}

func run(t testing.TB, i *installation, o Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), i.config, o)
	if err != nil {
		t.Fatalf("transfer: %v", err)
	}
	return r
}

func openTo(t testing.TB, i *installation) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), i.config.To, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestCopiesEveryTable(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 300)
	r := run(t, i, Options{BatchBytes: 4000})
	if len(r.Tables) != len(copied) {
		t.Errorf("the report has %d tables, want %d", len(r.Tables), len(copied))
	}
	for _, table := range r.Tables {
		if table.Rows == 0 || !table.Equal() {
			t.Errorf("table %s: %+v", table.Name, table)
		}
	}
	d := openTo(t, i)
	if err := d.CheckSchema(t.Context()); err != nil {
		t.Errorf("a server would not start on the target: %v", err)
	}
	var text string
	var flag bool
	err := d.Read(t.Context()).QueryRowContext(t.Context(), "SELECT properties, is_identified FROM persons WHERE id = 2").Scan(&text, &flag)
	if want := `{"persons.properties": [2, "é\u0000\\N	"]}`; err != nil || text != want || !flag {
		t.Errorf("properties %q, identified %v, %v; want %q, true", text, flag, err, want)
	}
	var id int64
	err = d.Write(t.Context()).QueryRowContext(t.Context(), "INSERT INTO persons (project_id, uuid, created_at, updated_at) VALUES (9, 'new', 1, 1) RETURNING id").Scan(&id)
	if err != nil || id != 6 {
		t.Errorf("the next person has the number %d, %v; want 6", id, err)
	}
}

package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/migrations"
)

// tablePlan is how a table is copied.
type tablePlan struct {
	name     string
	columns  []column
	keys     []string
	identity string // the identity column of the target; empty: none
	refers   []reference
	rows     int64 // of the source
}

func (t *tablePlan) columnNames() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// newPlan returns the plans of all tables in their order. It fails if a table or a column
// is in one of the databases only, or has a type that the package does not know.
func newPlan(ctx context.Context, src *source, dst *target) ([]*tablePlan, error) {
	from, err := src.tables(ctx)
	if err != nil {
		return nil, err
	}
	to, err := dst.tables(ctx)
	if err != nil {
		return nil, err
	}
	var plan []*tablePlan
	for _, name := range copied {
		s, d := from[name], to[name]
		if s == nil || d == nil {
			return nil, fmt.Errorf("the table %s is missing in one of the databases", name)
		}
		p, err := planTable(name, s, d)
		if err != nil {
			return nil, err
		}
		if p.rows, err = src.count(ctx, name); err != nil {
			return nil, err
		}
		plan = append(plan, p)
		delete(from, name)
		delete(to, name)
	}
	return plan, errors.Join(unknownTables(src.db.String(), from), unknownTables(dst.db.String(), to))
}

// schemaTables are the tables that the migrations of either database create.
var schemaTables = sync.OnceValues(func() (map[string]bool, error) {
	out := map[string]bool{}
	for _, dialect := range []migrations.Dialect{migrations.SQLite, migrations.Postgres} {
		names, err := migrations.Tables(dialect)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			out[name] = true
		}
	}
	return out, nil
})

// unknownTables returns an error for tables of the schema that no list names. Tables that
// are not of the schema are left alone.
func unknownTables[T any](database string, rest map[string]T) error {
	known, err := schemaTables()
	if err != nil {
		return err
	}
	var names []string
	for name := range rest {
		if _, ok := leftOut[name]; !ok && known[name] {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("%s has tables that this version cannot transfer: %s", database, strings.Join(names, ", "))
}

func planTable(name string, s *sourceTable, d *targetTable) (*tablePlan, error) {
	p := &tablePlan{name: name, columns: d.columns, keys: s.keys, identity: d.identity, refers: s.refers}
	names := p.columnNames()
	slices.Sort(names)
	have := slices.Sorted(slices.Values(s.columns))
	if !slices.Equal(names, have) {
		return nil, fmt.Errorf("table %s has the columns %s in the source and %s in the target", name, strings.Join(have, ", "), strings.Join(names, ", "))
	}
	return p, nil
}

// describeKey names a row.
func (t *tablePlan) describeKey(key rowKey) string {
	return strings.Join(t.keys, ", ") + " " + key.String()
}

// checkTargetSchema fails unless the target has the schema of this binary, which is also
// that of the source.
func checkTargetSchema(ctx context.Context, d *db.DB) error {
	steps, err := d.Steps(ctx)
	if err != nil {
		return err
	}
	var missing, unknown []int
	for _, s := range steps {
		switch {
		case s.Number == db.TransferMark:
		case !s.Known:
			unknown = append(unknown, s.Number)
		case s.AppliedAt.IsZero():
			missing = append(missing, s.Number)
		}
	}
	switch {
	case unknown != nil:
		return fmt.Errorf("the target, %s, has schema steps %v, which this version does not know: use a newer guidon", d, unknown)
	case missing != nil:
		return fmt.Errorf("the target, %s, lacks %d schema steps of this version: run guidon migrate with database.url of the target first", d, len(missing))
	}
	return nil
}

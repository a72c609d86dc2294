package dbtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A server without a template, as one given by its URL, gets one from many processes at once.
// Another schema has another template. One that was not used for long is dropped.
func TestServerGetsTemplates(t *testing.T) {
	t.Parallel()
	u := running(t).url
	admin, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	schema := strings.TrimPrefix(newName(), "guidon_test_")[:16] // names of databases are short
	t.Cleanup(func() {
		ctx := context.Background()
		for _, name := range templatesOf(ctx, t, admin, schema) {
			if _, err := admin.Exec(ctx, "DROP DATABASE "+name); err != nil {
				t.Error(err)
			}
		}
		_ = admin.Close(ctx)
	})

	const processes = 4
	var prepared [processes]preparation
	var all sync.WaitGroup
	for i := range prepared {
		all.Go(func() {
			var err error
			if prepared[i], err = newServer(u).prepare(schema); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	first := prepared[0]
	for _, p := range prepared {
		if p != first {
			t.Errorf("%+v and %+v", p, first)
		}
	}
	s := newServer(u)
	clone := open(t, s.create(t, first.strategy+" TEMPLATE "+first.template))
	if current, known, err := clone.Version(t.Context()); err != nil || current == 0 || current != known {
		t.Errorf("a clone is at step %d of %d, %v", current, known, err)
	}

	second, err := newServer(u).prepare(schema + "_second")
	if err != nil {
		t.Fatal(err)
	}
	wantTemplates(t, admin, schema, first.template, second.template)
	long := time.Now().UTC().Add(-templateAge - 48*time.Hour).Format(time.DateOnly)
	if _, err := admin.Exec(t.Context(), fmt.Sprintf("COMMENT ON DATABASE %s IS '%s%s'", first.template, templateUse, long)); err != nil {
		t.Fatal(err)
	}
	third, err := newServer(u).prepare(schema + "_third")
	if err != nil {
		t.Fatal(err)
	}
	wantTemplates(t, admin, schema, second.template, third.template)
}

func wantTemplates(t *testing.T, admin *pgx.Conn, schema string, want ...string) {
	t.Helper()
	if got := templatesOf(t.Context(), t, admin, schema); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v, want %v", got, want)
	}
}

// templatesOf lists the templates of schemas whose name begins like that, oldest first.
func templatesOf(ctx context.Context, t *testing.T, admin *pgx.Conn, schema string) []string {
	t.Helper()
	rows, err := admin.Query(ctx, "SELECT datname FROM pg_database WHERE starts_with(datname, 'guidon_template_' || $1) ORDER BY oid", schema)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

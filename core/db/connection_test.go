package db_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// A connection that the server closed is no outage: the check opens another one.
func TestClosedConnectionIsNoOutage(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	cfg := d.Pool().Config().ConnConfig
	first, err := db.Ping(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	same, err := db.Ping(t.Context(), cfg, first)
	if err != nil || same != first {
		t.Fatalf("a working connection was replaced: %v", err)
	}
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), "SELECT pg_terminate_backend(?)", first.PgConn().PID()); err != nil {
		t.Fatal(err)
	}
	second, err := db.Ping(t.Context(), cfg, first)
	if err != nil {
		t.Fatalf("a closed connection is reported as an outage: %v", err)
	}
	_ = second.Close(t.Context())
}

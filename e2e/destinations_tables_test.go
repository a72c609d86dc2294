//go:build e2e

package e2e_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
)

// TestDestinationPostgres reads the table of the postgres sink with pgx: each event is
// there once.
func TestDestinationPostgres(t *testing.T) {
	t.Parallel()
	postgres := dbtest.StartKillable(t)
	s := startWith(t, sinkYAML("warehouse", "postgres", fmt.Sprintf("url: %q", postgres.URL)))
	want := deliver(t, s, destination{"warehouse", func() { postgres.Kill(t) }, func() { postgres.Start(t) }, s.sinkProgress(t, "warehouse")})
	c, err := pgx.Connect(t.Context(), postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	rows, err := c.Query(t.Context(), "SELECT uuid::text, event, distinct_id, properties FROM events")
	if err != nil {
		t.Fatal(err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[rawEvent])
	if err != nil {
		t.Fatal(err)
	}
	arrived := arrivals{}
	for _, e := range events {
		arrived.checkRow(t, want, e)
	}
	arrived.checkOnce(t, want)
}

// TestDestinationClickHouse reads the table of the clickhouse sink through ClickHouse.
// With FINAL each event is there once.
func TestDestinationClickHouse(t *testing.T) {
	t.Parallel()
	server := clickhousetest.StartServer(t)
	s := startWith(t, sinkYAML("analytics", "clickhouse", fmt.Sprintf("url: %q\npassword: hush\nlinger: 100ms", server.URL)))
	want := deliver(t, s, destination{"analytics", func() { server.Kill(t) }, func() { server.Start(t) }, s.sinkProgress(t, "analytics")})
	answer := clickhousetest.Query(t, server.URL, "SELECT uuid, event, distinct_id, properties FROM events FINAL FORMAT JSONEachRow")
	arrived := arrivals{}
	arrived.checkRows(t, want, answer)
	arrived.checkOnce(t, want)
	t.Logf("%s rows before ClickHouse merges them", clickhousetest.Query(t, server.URL, "SELECT count() FROM events"))
}

//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
)

// eventServer is the ClickHouse of a round that keeps its events there.
type eventServer struct {
	*clickhousetest.Server
	address string
	client  *wire.Client // past the links
	doubled atomic.Int64 // rows that storedRows read twice at its last call
}

// startClickHouse starts ClickHouse, with a link of each node to it.
func (c *chaos) startClickHouse() {
	c.Helper()
	port := func() int {
		_, port, err := net.SplitHostPort(stableAddress(c.T))
		if err != nil {
			c.Fatal(err)
		}
		n, _ := strconv.Atoi(port)
		return n
	}
	web, native, dir := port(), port(), filepath.Join(c.dir, "clickhouse")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.Fatal(err)
	}
	s := &eventServer{Server: clickhousetest.StartServerOn(c.T, dir, web, native), address: fmt.Sprint("127.0.0.1:", web)}
	var err error
	if s.client, err = wire.New(clickhouseURL(s.address)); err != nil {
		c.Fatal(err)
	}
	for _, n := range c.nodes {
		n.events = newLink(c.T, "tcp", s.address)
	}
	c.clickhouse = s
}

// clickhouseURL returns the value of events.url for an address.
func clickhouseURL(address string) string { return "clickhouse://default:hush@" + address + "/default" }

// storedRow is an event in ClickHouse.
type storedRow struct {
	row              int64
	uuid             string
	distinctID, name string
}

// storedRows returns the rows of events in their order. A row that was inserted twice, and
// is not merged yet, occurs once, as it does in lists of the server. The rows of a
// distinct id are in the order in which they were stored: each transaction of a worker
// gives its events the numbers behind those of the transactions before.
func (s *eventServer) storedRows(ctx context.Context, condition string) (out []storedRow, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var mixed error
	doubled := 0
	err = s.client.Query(ctx, "SELECT row, uuid, distinct_id, event FROM guidon_events WHERE project_id = 1 AND "+condition+" ORDER BY row", func(r *wire.Reader) error {
		e := storedRow{row: r.Int(), uuid: r.UUID().String(), distinctID: r.String(), name: r.String()}
		if r.Err != nil {
			return r.Err
		}
		if n := len(out); n == 0 || out[n-1].row != e.row {
			out = append(out, e)
		} else if doubled++; out[n-1] != e {
			mixed = fmt.Errorf("row %d is %+v and %+v", e.row, out[n-1], e)
		}
		return nil
	})
	s.doubled.Store(int64(doubled))
	return out, errors.Join(err, mixed)
}

// uuids returns the uuids of the rows that a condition selects, in the order of the rows.
func (s *eventServer) uuids(ctx context.Context, condition string) ([]string, error) {
	rows, err := s.storedRows(ctx, condition)
	out := make([]string, len(rows))
	for i := range rows {
		out[i] = rows[i].uuid
	}
	return out, err
}

// havingUUID returns the condition for events with one of the uuids.
func havingUUID(ids []string) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = "toUUID(" + wire.Quote(uuid.MustParse(id).String()) + ")"
	}
	return "uuid IN (" + strings.Join(texts, ", ") + ")"
}

// awaitLateRows waits until the server has forgotten each erasure in ClickHouse, which is
// 15 minutes after its deletion. Where a repeated insertion has no token, as in ClickHouse
// 18, an insertion that was sent before the deletion can bring events back until then.
func (c *chaos) awaitLateRows() {
	c.Helper()
	c.notef("events of erased persons are in ClickHouse; waiting until they are deleted once more")
	eventually(c.T, 20*time.Minute, "no erasure in ClickHouse is left", func() error {
		time.Sleep(time.Second)
		conn, err := pgx.Connect(c.Context(), c.storeURL().String())
		if err != nil {
			return err
		}
		defer conn.Close(c.Context())
		n := 0
		if err := conn.QueryRow(c.Context(), "SELECT count(*) FROM event_erasures").Scan(&n); err != nil || n > 0 {
			return fmt.Errorf("%d are: %w", n, err)
		}
		return nil
	})
}

// dump writes the rows to a file.
func (s *eventServer) dump(c *chaos) {
	rows, err := s.storedRows(context.Background(), "1")
	if err != nil {
		c.Logf("dump ClickHouse: %v", err)
	}
	var text strings.Builder
	for _, e := range rows {
		fmt.Fprintf(&text, "%d\t%s\t%s\t%s\n", e.row, e.uuid, e.distinctID, e.name)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "clickhouse_events.tsv"), []byte(text.String()), 0o600); err != nil {
		c.Log(err)
	}
}

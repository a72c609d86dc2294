package db_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/db/pools"
	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/fault"
)

// Reads of one kind of work do not wait for those of another, on both databases.
func TestKindsOfReadsHavePoolsOfTheirOwn(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *db.DB{"SQLite": dbtest.SQLite, "Postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, busy := range []pools.Kind{pools.Management, pools.Scan} {
				held, err := d.Read(pools.With(ctx, busy)).(*bun.DB).Conn(ctx)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = held.Close() }()
			}
			var one int
			for _, read := range []bun.IDB{d.Read(ctx), d.Lookup(ctx), d.Write(ctx)} {
				if read == d.Read(pools.With(ctx, pools.Scan)) || read == d.Read(pools.With(ctx, pools.Management)) {
					t.Error("the pool of another kind")
				}
				if err := read.NewRaw("SELECT 1").Scan(ctx, &one); err != nil || one != 1 {
					t.Errorf("%d, %v", one, err)
				}
			}
		})
	}
}

// A scan reads with the connections for scans; in a transaction it joins it.
func TestScansUseTheirPool(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	ctx := t.Context()
	want := d.Read(pools.With(ctx, pools.Scan))
	for _, run := range []func(context.Context, int64, func(context.Context) error) error{d.RunScan, d.RunBackgroundScan} {
		err := run(ctx, 1, func(ctx context.Context) error {
			if d.Read(ctx) != want {
				t.Error("a scan reads from another pool")
			}
			if running, _ := d.Scans(); running != 1 {
				t.Errorf("%d scans run", running)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = d.Tx(ctx, func(ctx context.Context) error {
			return run(ctx, 1, func(ctx context.Context) error {
				if running, _ := d.Scans(); running != 0 || d.Read(ctx) == want {
					t.Error("a transaction waits for a place")
				}
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A statement of a scan that takes too long ends with an Unavailable fault.
func TestStatementTimeoutOfScans(t *testing.T) {
	t.Parallel()
	url := dbtest.PostgresURL(t)
	cfg := db.DefaultConfig()
	cfg.URL, cfg.StatementTimeout = url, 50*time.Millisecond
	d, err := db.Open(t.Context(), cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	sleep := func(ctx context.Context) error {
		_, err := d.Read(ctx).ExecContext(ctx, "SELECT pg_sleep(0.3)")
		return err
	}
	if err := d.RunScan(t.Context(), 1, sleep); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if err := sleep(t.Context()); err != nil {
		t.Errorf("an internal read: %v", err)
	}
}

func TestInvalidPoolSettings(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*db.Config){
		"connections": func(c *db.Config) { c.ManagementConnections = -1 },
		"timeout":     func(c *db.Config) { c.StatementTimeout = -time.Second },
		"places":      func(c *db.Config) { c.Scans.Places = -1 },
		"queue":       func(c *db.Config) { c.Scans = scan.Config{Places: 1, Queue: -1} },
		"wait":        func(c *db.Config) { c.Scans = scan.Config{Places: 1, MaxWait: -1} },
	} {
		cfg := db.DefaultConfig()
		if change(&cfg); cfg.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	d, err := db.Open(t.Context(), db.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "x.db")}, "") // zero limits are the defaults
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

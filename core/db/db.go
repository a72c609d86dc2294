// Package db opens the relational database: an embedded SQLite file by default, a
// PostgreSQL server if the URL names one, with the same code above both. Stores
// get a handle from Read or Write and write their SQL once; Tx runs several stores
// in one transaction, which they find in the context.
//
// Reads of different kinds of work have pools of their own (package pools), so that
// one kind cannot occupy the connections of another: internal reads, the management
// API, and scans, whose number package scan bounds. A context carries its kind, and
// Read obeys it.
//
// On SQLite there is one connection for writing, a pool of each kind for reading,
// and another one for the short reads of decide (WAL: readers never wait for the
// writer). A committed transaction is on disk
// (synchronous=FULL): the ingestion worker moves its journal cursor in the same
// transaction as what it wrote, and the journal forgets records on the strength
// of that cursor, so a commit that a power cut could undo would lose events.
//
// On PostgreSQL writes, internal reads and lookups go through one pgx pool. Hot
// paths use the pool itself (Pool, PgxConn: COPY, UNNEST, prepared reads); bun sends
// its finished SQL text in one round trip without preparing it.
//
// pgx is part of the package, because stores get its connections from a handle. The SQLite
// library is not: a program that opens SQLite files imports core/db/sqlite.
package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db/logcheck"
	"github.com/guidonhq/guidon/core/db/pools"
	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/db/wake"
)

// Config is the location of the store, with its limits.
type Config struct {
	// URL is empty for the SQLite file guidon.db in the data directory,
	// "sqlite:PATH" for a SQLite file elsewhere, or
	// "postgres://user:password@host:port/database?…" for a server. The pool
	// parameters of pgx (pool_max_conns and so on) may be given in its query.
	URL string `koanf:"url"`
	// ManagementConnections bounds the connections for reads of the management API.
	// 0 stands for the default.
	ManagementConnections int `koanf:"management_connections"`
	// StatementTimeout is how long PostgreSQL works on one statement of a scan or a
	// read of the management API. 0 sets no limit.
	StatementTimeout time.Duration `koanf:"statement_timeout"`
	// SessionName ends the application_name of the connections to PostgreSQL.
	SessionName string `koanf:"-"`
	ReadOnly    bool   `koanf:"-"` // a server neither migrates PostgreSQL nor writes to it
	// Scans bounds searches, counts and exports. The zero Config stands for the
	// default.
	Scans scan.Config `koanf:"scans"`
}

// DefaultConfig is the embedded SQLite file, with four connections for the
// management API.
func DefaultConfig() Config {
	return Config{ManagementConnections: 4, StatementTimeout: 5 * time.Minute, Scans: scan.DefaultConfig()}
}

// Validate reports a URL that names no store, and invalid limits. The error never
// contains the URL, which may hold a password.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch _, err := parseURL(c.URL, ""); {
	case err != nil:
		return err
	case c.ManagementConnections < 1 || c.ManagementConnections > 1000:
		return errors.New("management_connections must be between 1 and 1000")
	case c.StatementTimeout < 0:
		return errors.New("statement_timeout must not be negative (0 sets no limit)")
	}
	return c.Scans.Validate()
}

// withDefaults replaces zero fields by their defaults.
func (c Config) withDefaults() Config {
	if c.ManagementConnections == 0 {
		c.ManagementConnections = DefaultConfig().ManagementConnections
	}
	if c.Scans == (scan.Config{}) {
		c.Scans = scan.DefaultConfig()
	}
	c.Scans = c.Scans.WithPlaces()
	return c
}

// DB is an open store. All methods may be called from any number of goroutines.
// Half of its methods serve one dialect each; callers see connections and
// transactions only.
type DB struct {
	Wakes    wake.Wakes // for pollers, after changes by other nodes
	ReadOnly bool       // Config.ReadOnly
	readers  [pools.Kinds]*bun.DB
	lookup   *bun.DB // of Lookup; that of internal reads on PostgreSQL
	write    *bun.DB
	limiter  *scan.Limiter
	others   map[pools.Kind]*pgxpool.Pool // of management and scans; nil on SQLite
	pool     *pgxpool.Pool                // nil on SQLite
	scans    SQLiteScanner                // nil on PostgreSQL
	name     string                       // kind and place, for messages; holds no secret

	queries   *prometheus.HistogramVec
	beginning atomic.Int64 // transactions that wait for their connection

	waiting *waiting // of a Postgres database opened by OpenServer, else nil

	file      string // the path of the SQLite file
	watch     *watch // of the SQLite file; nil on PostgreSQL
	stopCheck func() // of a server's SQLite file
}

// Open connects to the store and checks that it answers; it changes no schema.
// A SQLite file and its directory are created when they are missing, readable
// by their owner only. dataDir is where the file is when cfg.URL is empty. It
// fails if the write-ahead log of a SQLite file is damaged and no process has the
// file open, because SQLite would discard commits.
func Open(ctx context.Context, cfg Config, dataDir string) (*DB, error) {
	return open(ctx, cfg, dataDir, func(file string) (*LogDamage, error) { return nil, logcheck.Check(file) })
}

// open is Open with what it does about the write-ahead log of a SQLite file.
func open(ctx context.Context, cfg Config, dataDir string, readLog func(file string) (*LogDamage, error)) (*DB, error) {
	t, err := parseURL(cfg.URL, dataDir)
	if err != nil {
		return nil, err
	}
	if t.postgres != "" {
		return openPostgres(ctx, cfg, t.postgres)
	}
	return openSQLite(ctx, cfg, t.file, newWatch(), readLog)
}

// OpenWrapped opens a SQLite file through the connectors that wrap returns. It is for
// tests that inject failures. Connections, statements and rows must implement what
// those of the driver do. Scans of large tables do not use them.
func OpenWrapped(ctx context.Context, file string, wrap func(driver.Connector) driver.Connector) (*DB, error) {
	w := newWatch()
	w.wrap = wrap
	return openSQLite(ctx, Config{}, file, w, func(file string) (*LogDamage, error) { return nil, logcheck.Check(file) })
}

// Postgres reports whether the store is PostgreSQL; it is SQLite otherwise.
func (d *DB) Postgres() bool { return d.pool != nil }

// String names the store for a log line, without any secret.
func (d *DB) String() string { return d.name }

// Ping asks the store for a trivial answer.
func (d *DB) Ping(ctx context.Context) error {
	var one int
	if err := d.readers[pools.Internal].QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
		return fmt.Errorf("ask %s for an answer: %w", d.name, err)
	}
	return nil
}

// LookupDB is the pool behind Lookup, for prepared statements. On SQLite its
// connections refuse to write. It knows nothing of a transaction.
func (d *DB) LookupDB() *sql.DB { return d.lookup.DB }

// Close waits for running queries and releases the store; on SQLite it moves
// the write-ahead log into the file. Closing twice does nothing.
func (d *DB) Close() error {
	d.stopWaiting()
	if d.stopCheck != nil {
		d.stopCheck()
	}
	if d.scans != nil {
		d.scans.Close()
	}
	err := errors.Join(d.lookup.Close(), d.write.Close())
	for _, r := range d.readers {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
	}
	if d.pool != nil {
		d.pool.Close()
	}
	for _, p := range d.others {
		p.Close()
	}
	if err != nil {
		return fmt.Errorf("close %s: %w", d.name, err)
	}
	return nil
}

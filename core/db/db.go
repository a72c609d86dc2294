// Package db opens the relational database: an embedded SQLite file by default, a
// PostgreSQL server if the URL names one, with the same code above both. Stores
// get a handle from Read or Write and write their SQL once; Tx runs several stores
// in one transaction, which they find in the context.
//
// On SQLite there is one connection for writing, a small pool for reading, and
// another one for the short reads of decide, which so do not wait behind searches
// (WAL: readers never wait for the writer). A committed transaction is on disk
// (synchronous=FULL): the ingestion worker moves its journal cursor in the same
// transaction as what it wrote, and the journal forgets records on the strength
// of that cursor, so a commit that a power cut could undo would lose events.
//
// On PostgreSQL everything goes through one pgx pool. Hot paths use the pool
// itself (Pool, PgxConn: COPY, UNNEST, prepared reads); bun sends its finished
// SQL text in one round trip without preparing it.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/uptrace/bun"
)

// Config says where the store is.
type Config struct {
	// URL is empty for the SQLite file guidon.db in the data directory,
	// "sqlite:PATH" for a SQLite file elsewhere, or
	// "postgres://user:password@host:port/database?…" for a server. The pool
	// parameters of pgx (pool_max_conns and so on) may be given in its query.
	URL string `koanf:"url"`
}

// DefaultConfig is the embedded SQLite file.
func DefaultConfig() Config { return Config{} }

// Validate reports a URL that names no store. The error never contains the
// URL, which may hold a password.
func (c Config) Validate() error {
	_, err := parseURL(c.URL, "")
	return err
}

// DB is an open store. All methods may be called from any number of goroutines.
// Half of its methods serve one dialect each; callers see connections and
// transactions only.
type DB struct {
	read   *bun.DB
	lookup *bun.DB // of Lookup; read on PostgreSQL
	write  *bun.DB
	pool   *pgxpool.Pool // nil on SQLite
	name   string        // what it is, for people; holds no secret

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
	return open(ctx, cfg, dataDir, func(file string) (*LogDamage, error) { return nil, checkLog(file) })
}

// open is Open with what it does about the write-ahead log of a SQLite file.
func open(ctx context.Context, cfg Config, dataDir string, readLog func(file string) (*LogDamage, error)) (*DB, error) {
	t, err := parseURL(cfg.URL, dataDir)
	if err != nil {
		return nil, err
	}
	var d *DB
	if t.postgres != "" {
		d, err = openPostgres(ctx, t.postgres)
	} else {
		d, err = openSQLite(ctx, t.file, readLog)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Postgres reports whether the store is PostgreSQL; it is SQLite otherwise.
func (d *DB) Postgres() bool { return d.pool != nil }

// String names the store for a log line, without any secret.
func (d *DB) String() string { return d.name }

// Ping asks the store for a trivial answer.
func (d *DB) Ping(ctx context.Context) error {
	var one int
	if err := d.read.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
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
	err := d.read.Close()
	if d.write != d.read {
		err = errors.Join(err, d.lookup.Close(), d.write.Close())
	}
	if d.pool != nil {
		d.pool.Close()
	}
	if err != nil {
		return fmt.Errorf("close %s: %w", d.name, err)
	}
	return nil
}

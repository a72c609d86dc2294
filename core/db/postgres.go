package db

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/guidonhq/guidon/core/db/pools"
	"github.com/guidonhq/guidon/core/db/scan"
)

// connectTimeout bounds one attempt to reach the server, unless the URL says
// otherwise by connect_timeout.
const connectTimeout = 10 * time.Second

var errPostgresURL = errors.New("database.url is not a valid Postgres URL: expected " +
	"postgres://user:password@host:port/database with special characters percent-encoded " +
	"(the value is not shown, it may hold a password)")

// checkPostgresURL reports a URL that poolConfig refuses.
func checkPostgresURL(raw string) error {
	_, err := poolConfig(raw)
	return err
}

func openPostgres(ctx context.Context, settings Config, raw string) (*DB, error) {
	d, err := newPostgres(ctx, settings, raw, nil)
	if err != nil {
		return nil, err
	}
	if err := d.pool.Ping(ctx); err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("reach %s: %w", d.name, err)
	}
	return d, nil
}

// newPostgres returns a handle without a connection. w, unless nil, refuses
// connections until the database is ready.
func newPostgres(ctx context.Context, settings Config, raw string, w *waiting) (*DB, error) {
	cfg, err := poolConfig(raw)
	if err != nil {
		return nil, err
	}
	if name := cfg.ConnConfig.RuntimeParams["application_name"]; settings.SessionName != "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = name[:min(len(name), 20)] + "/" + settings.SessionName
	}
	if settings.ReadOnly {
		cfg.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	}
	if w != nil {
		cfg.BeforeConnect, cfg.PrepareConn = w.beforeConnect, w.prepareConn
	}
	queries := newQuerySeconds()
	cfg.ConnConfig.Tracer = &pgTracer{timesOf(queries, "postgres", true)}
	name := fmt.Sprintf("Postgres database %s on %s", cfg.ConnConfig.Database, cfg.ConnConfig.Host)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	b := newHandle(pool)
	d := &DB{lookup: b, write: b, pool: pool, name: name, waiting: w, queries: queries, ReadOnly: settings.ReadOnly}
	d.readers[pools.Internal] = b
	if err := d.addPostgresReaders(ctx, settings.withDefaults(), cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), d.Close())
	}
	return d, nil
}

// newHandle returns a handle whose connections are those of pool.
func newHandle(pool *pgxpool.Pool) *bun.DB {
	handle := sql.OpenDB(unprepared{stdlib.GetPoolConnector(pool)})
	handle.SetMaxIdleConns(0) // idle connections stay in the pool of pgx
	return bun.NewDB(handle, pgdialect.New())
}

// addPostgresReaders adds the pools of management and scans, with a limit of the
// time of a statement unless the URL has one. They open connections when they are
// needed and close idle ones.
func (d *DB) addPostgresReaders(ctx context.Context, settings Config, base *pgxpool.Config) error {
	d.limiter, d.others = scan.New(settings.Scans), map[pools.Kind]*pgxpool.Pool{}
	for kind, size := range map[pools.Kind]int{
		pools.Management: settings.ManagementConnections, pools.Scan: scanConnections(settings.Scans),
	} {
		cfg := base.Copy()
		cfg.ConnConfig.Tracer = &pgTracer{timesOf(d.queries, kind.String(), false)}
		cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns, cfg.MaxConnIdleTime = int32(size), 0, 0, idleTime
		if limit := settings.StatementTimeout; limit > 0 {
			pools.SetDefault(cfg.ConnConfig.RuntimeParams, "statement_timeout", strconv.FormatInt(limit.Milliseconds(), 10))
		}
		pool, err := pgxpool.NewWithConfig(ctx, cfg)
		if err != nil {
			return err
		}
		d.others[kind] = pool
		d.readers[kind] = newHandle(pool)
	}
	return nil
}

// poolConfig replaces the errors of the parsers, which quote parts of the URL.
func poolConfig(raw string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(raw)
	if err != nil {
		return nil, errPostgresURL
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errPostgresURL
	}
	if !u.Query().Has("pool_max_conns") {
		cfg.MaxConns = int32(max(10, 4*runtime.GOMAXPROCS(0)))
	}
	cfg.ConnConfig.ConnectTimeout = cmp.Or(cfg.ConnConfig.ConnectTimeout, connectTimeout)
	params := cfg.ConnConfig.RuntimeParams
	pools.SetDefault(params, "application_name", "guidon")
	// Compiling a short statement takes up to 600 ms, and the planner chooses it for
	// tables without statistics.
	pools.SetDefault(params, "jit", "off")
	return cfg, nil
}

// unprepared makes connections on which a query without arguments is sent in
// one round trip. bun writes its arguments into the SQL text, so preparing it
// would cost a second trip and fill the statement cache with texts that never
// come back. Queries with arguments keep pgx's cached statements.
type unprepared struct{ driver.Connector }

func (c unprepared) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	std, ok := conn.(*stdlib.Conn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("unexpected Postgres connection %T", conn), conn.Close())
	}
	return &pgConn{std}, nil
}

type pgConn struct{ *stdlib.Conn }

var oneTrip = []driver.NamedValue{{Ordinal: 1, Value: pgx.QueryExecModeExec}}

// QueryContext implements driver.QueryerContext. (pgx never prepares an Exec
// without arguments by itself.)
func (c *pgConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if len(args) == 0 {
		args = oneTrip
	}
	return c.Conn.QueryContext(ctx, query, args)
}

// Pool is the connection pool of a PostgreSQL store, for hot paths that want
// pgx itself; nil on SQLite. It knows nothing of a transaction in a context.
func (d *DB) Pool() *pgxpool.Pool { return d.pool }

// poolOf returns the pool for the kind of work of ctx.
func (d *DB) poolOf(ctx context.Context) *pgxpool.Pool {
	if pool := d.others[pools.Of(ctx)]; pool != nil {
		return pool
	}
	return d.pool
}

// ErrNotPostgres is returned by PgxConn on SQLite.
var ErrNotPostgres = errors.New("the store is not Postgres")

// PgxConn calls fn with a pgx connection: the one that carries the transaction
// of ctx when there is one, so that COPY is part of it, else one from the pool.
// fn must neither end a transaction it did not begin nor keep the connection.
func (d *DB) PgxConn(ctx context.Context, fn func(*pgx.Conn) error) error {
	if d.pool == nil {
		return ErrNotPostgres
	}
	if t := d.txOf(ctx); t != nil {
		return t.conn.Raw(func(c any) error { return fn(c.(*pgConn).Conn.Conn()) })
	}
	return d.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return fn(c.Conn()) })
}

package cluster

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/guidonhq/guidon/core/db"
)

// nodeRow is a node as it is stored.
type nodeRow struct {
	id, name, version, address string
	roles, takes               []string
	draining                   bool
	beat                       int64
	startedAt                  time.Time
}

// leaseRow is a lease as it is stored; node is empty while it is free.
type leaseRow struct {
	name, node string
	token      int64
}

// view is what the database has.
type view struct {
	nodes  []nodeRow
	leases []leaseRow
}

// claim is a lease that a node takes, as it saw the lease.
type claim struct {
	name  string
	node  string // that takes it
	token int64  // as seen; 0 for a lease that does not exist yet
	beat  int64  // of the owner, as seen
}

// store keeps nodes and leases.
type store interface {
	// writeBeat stores the row of a node with a new beat.
	writeBeat(ctx context.Context, n nodeRow) error
	read(ctx context.Context) (view, error)
	// take makes c.node the owner, unless the token has changed, or the owner is
	// another node whose beat has changed. It returns the new token, or 0.
	take(ctx context.Context, c claim) (token int64, err error)
	// release frees a lease that the node still has.
	release(ctx context.Context, l leaseRow) error
	// fence reports whether the node has the lease, and locks it until the end of
	// the transaction of ctx.
	fence(ctx context.Context, l leaseRow) (bool, error)
	// endSessions ends the sessions of a node whose beat is still as seen, and empties
	// the groups of its row.
	endSessions(ctx context.Context, node string, beat int64) error
	// remove frees all leases of a node and deletes its row.
	remove(ctx context.Context, node string) error
	// removeOld deletes those of the nodes that were not seen for a day.
	removeOld(ctx context.Context, nodes []string) error
	// identify stores the id of the log of a node, unless there is one that it must not
	// replace, and returns the stored one, empty for none.
	identify(ctx context.Context, n Info) (stored string, err error)
	ready() bool
	close()
}

const (
	// statementTimeout bounds a statement, so that a lost connection or a lock does
	// not keep a node from its next beat.
	statementTimeout = 2 * time.Second
	connections      = 3
)

// postgres is the store. It has connections of its own: a beat does not wait for
// connections that requests and workers occupy.
type postgres struct {
	db   *db.DB
	pool *pgxpool.Pool
}

var _ store = (*postgres)(nil)

func newPostgres(d *db.DB) (*postgres, error) {
	cfg := d.Pool().Config()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = connections, 0, 0
	// Not the name of the other connections: endSessions leaves these alone.
	cfg.ConnConfig.RuntimeParams["application_name"] = "guidon cluster"
	cfg.ConnConfig.ConnectTimeout = statementTimeout
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	return &postgres{d, pool}, nil
}

func (p *postgres) exec(ctx context.Context, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	_, err := p.pool.Exec(ctx, query, args...)
	return err
}

func (p *postgres) writeBeat(ctx context.Context, n nodeRow) error {
	return p.exec(ctx, `INSERT INTO cluster_nodes (id, name, version, roles, address, takes, draining, beat)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 1)
		ON CONFLICT (id) DO UPDATE SET beat = cluster_nodes.beat + 1, takes = $6, draining = $7, seen_at = now()`,
		n.id, n.name, n.version, n.roles, n.address, n.takes, n.draining)
}

// read reads the leases first: an owner that the nodes lack has ended.
func (p *postgres) read(ctx context.Context) (v view, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	var b pgx.Batch
	b.Queue("SELECT name, coalesce(node, ''), token FROM cluster_leases").Query(func(rows pgx.Rows) (err error) {
		v.leases, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l leaseRow, err error) {
			return l, row.Scan(&l.name, &l.node, &l.token)
		})
		return err
	})
	b.Queue("SELECT id, name, version, roles, address, takes, draining, beat, started_at FROM cluster_nodes").Query(func(rows pgx.Rows) (err error) {
		v.nodes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n nodeRow, err error) {
			return n, row.Scan(&n.id, &n.name, &n.version, &n.roles, &n.address, &n.takes, &n.draining, &n.beat, &n.startedAt)
		})
		return err
	})
	return v, p.pool.SendBatch(ctx, &b).Close()
}

func (p *postgres) take(ctx context.Context, c claim) (token int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err = p.pool.QueryRow(ctx, `INSERT INTO cluster_leases AS l (name, node, token) VALUES ($1, $2, 1)
		ON CONFLICT (name) DO UPDATE SET node = $2, token = l.token + 1, taken_at = now()
		WHERE l.token = $3 AND (l.node IS NULL OR l.node = $2
			OR NOT EXISTS (SELECT 1 FROM cluster_nodes n WHERE n.id = l.node AND n.beat <> $4))
		RETURNING token`, c.name, c.node, c.token, c.beat).Scan(&token)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return token, err
}

func (p *postgres) release(ctx context.Context, l leaseRow) error {
	return p.exec(ctx, "UPDATE cluster_leases SET node = NULL WHERE name = $1 AND node = $2 AND token = $3", l.name, l.node, l.token)
}

func (p *postgres) fence(ctx context.Context, l leaseRow) (bool, error) {
	var found int
	err := p.db.Write(ctx).NewRaw("SELECT 1 FROM cluster_leases WHERE name = ? AND node = ? AND token = ? FOR SHARE", l.name, l.node, l.token).Scan(ctx, &found)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// endSessions needs no rights: a user may end sessions of its own. The row of the node
// takes nothing from now on, so that a node that starts does not leave a part for it
// until it has seen for itself that the node is dead. The next beat of the node, if it
// only was stopped, restores the row.
func (p *postgres) endSessions(ctx context.Context, node string, beat int64) error {
	emptied := p.exec(ctx, "UPDATE cluster_nodes SET takes = '{}' WHERE id = $1 AND beat = $2", node, beat)
	return errors.Join(emptied, p.exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND usename = current_user AND right(application_name, length($1)) = $1
			AND NOT EXISTS (SELECT 1 FROM cluster_nodes WHERE id = $1 AND beat <> $2)`, node, beat))
}

func (p *postgres) remove(ctx context.Context, node string) error {
	if err := p.exec(ctx, "UPDATE cluster_leases SET node = NULL WHERE node = $1", node); err != nil {
		return err
	}
	return p.exec(ctx, "DELETE FROM cluster_nodes WHERE id = $1", node)
}

func (p *postgres) removeOld(ctx context.Context, nodes []string) error {
	return p.exec(ctx, `DELETE FROM cluster_nodes n WHERE id = ANY ($1) AND seen_at < now() - interval '1 day'
		AND NOT EXISTS (SELECT 1 FROM cluster_leases l WHERE l.node = n.id)`, nodes)
}

func (p *postgres) ready() bool { return p.db.IsReady() }

func (p *postgres) close() { p.pool.Close() }

// identify replaces an id only while no other node has been seen lately, by the clock of
// the database: nodes with two logs would have the same leases. A node without a log
// removes it.
func (p *postgres) identify(ctx context.Context, n Info) (stored string, err error) {
	const others = "EXISTS (SELECT 1 FROM cluster_nodes WHERE id <> $2 AND seen_at > now() - interval '10 seconds')"
	if n.LogID != "" {
		err = p.exec(ctx, "INSERT INTO cluster_log (one, id) VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET id = excluded.id WHERE $3 AND NOT "+others, n.LogID, n.ID, n.ReplaceLog)
	} else if n.ReplaceLog {
		err = p.exec(ctx, "DELETE FROM cluster_log WHERE id <> $1 AND NOT "+others, n.LogID, n.ID)
	}
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return stored, p.pool.QueryRow(ctx, "SELECT coalesce((SELECT id FROM cluster_log), '')").Scan(&stored)
}

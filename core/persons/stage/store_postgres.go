package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db"
)

// postgresStore is the batchStore on PostgreSQL, where other nodes write the same
// tables. The first attempt loads without locks. Before it writes, it locks the
// persons that it changes, in the order of their ids, and checks their versions;
// rows that another node has inserted show as a conflict. In both cases the
// attempt is rolled back and the next one locks before it loads.
//
// A transaction must never wait for a person with a lower id than one it has locked:
// two that do so block each other. So an attempt that loads a person it has not locked,
// because another node merged the owner of a distinct id while the lock was awaited, is
// rolled back as after a conflict.
//
// Code that takes a distinct id from a person must increment the version of that
// person, as merging (which deletes it) and splitting do.
type postgresStore struct{ db *db.DB }

// errMoved is the error of a load after which a distinct id has another person than the
// one that was locked.
var errMoved = errors.New("a distinct id has got another person")

// The stage looks up many rows by their keys in tables that start empty. While
// they are small, or without statistics, PostgreSQL may plan a scan and keep the
// plan when they are large. So scans are disabled, and each query looks up its
// keys one by one.
const (
	pgBegin = `SAVEPOINT persons; SET LOCAL enable_seqscan = off`
	pgUndo  = `ROLLBACK TO SAVEPOINT persons; RELEASE SAVEPOINT persons`
	pgEnd   = `RELEASE SAVEPOINT persons; SET LOCAL enable_seqscan TO DEFAULT`
)

func (s *postgresStore) attempt(ctx context.Context, fn func(context.Context) (bool, error)) (bool, error) {
	if err := s.exec(ctx, pgBegin); err != nil {
		return false, err
	}
	done, err := fn(ctx)
	switch {
	case err != nil && !db.BrokenReference(err) && !errors.Is(err, errMoved):
		return false, err
	case err != nil || !done: // a person or group type was deleted, moved, or a row changed
		return false, s.exec(ctx, pgUndo)
	}
	return true, s.exec(ctx, pgEnd)
}

func (s *postgresStore) exec(ctx context.Context, query string) error {
	_, err := s.db.Write(ctx).ExecContext(ctx, query)
	return err
}

const (
	pgLock = `SELECT l.id FROM (
			SELECT DISTINCT d.person_id FROM unnest($2::text[]) AS w (id) CROSS JOIN LATERAL (
				SELECT d.person_id FROM person_distinct_ids d WHERE d.project_id = $1 AND d.distinct_id = w.id LIMIT 1) d
			ORDER BY d.person_id) k
		CROSS JOIN LATERAL (SELECT p.id FROM persons p WHERE p.id = k.person_id LIMIT 1 FOR UPDATE) l`
	pgLoad = `SELECT w.id, p.* FROM unnest($2::text[]) AS w (id) CROSS JOIN LATERAL (
			SELECT p.id, p.uuid, p.created_at, p.is_identified, p.version, p.properties
			FROM person_distinct_ids d JOIN persons p ON p.id = d.person_id
			WHERE d.project_id = $1 AND d.distinct_id = w.id LIMIT 1) p`
	pgLoadPersonless = `SELECT l.distinct_id FROM unnest($2::text[]) AS w (id) CROSS JOIN LATERAL (
			SELECT l.distinct_id FROM lone_distinct_ids l WHERE l.project_id = $1 AND l.distinct_id = w.id LIMIT 1) l`
	pgTypes  = `SELECT name, slot FROM group_types WHERE project_id = $1`
	pgGroups = `SELECT g.* FROM unnest($2::text[], $3::text[]) AS w (name, key) CROSS JOIN LATERAL (
			SELECT g.slot, g.group_key, g.created_at, g.version, g.properties
			FROM group_types t JOIN project_groups g ON g.project_id = $1 AND g.slot = t.slot
			WHERE t.project_id = $1 AND t.name = w.name AND g.group_key = w.key LIMIT 1) g`
)

// load sends all queries in one round trip.
func (s *postgresStore) load(ctx context.Context, b *batchState, plan *loadPlan) error {
	q := &pgx.Batch{}
	locked := map[int64]bool{}
	if b.attempt > 0 {
		q.Queue(pgLock, b.project, plan.ids).Query(scanAll(scanIDs(locked)))
	}
	q.Queue(pgLoad, b.project, plan.ids).Query(scanAll(b.scanPerson))
	if len(plan.merged) > 0 {
		q.Queue(pgLoadPersonless, b.project, plan.merged).Query(scanAll(b.scanPersonless))
	}
	if plan.types {
		q.Queue(pgTypes, b.project).Query(scanAll(b.groups.scanType))
	}
	if len(plan.groups) > 0 {
		names, keys := make([]string, len(plan.groups)), make([]string, len(plan.groups))
		for i, g := range plan.groups {
			names[i], keys[i] = g.name, g.key
		}
		q.Queue(pgGroups, b.project, names, keys).Query(scanAll(b.groups.scanGroup))
	}
	return s.db.PgxConn(ctx, func(conn *pgx.Conn) error {
		if err := conn.SendBatch(ctx, q).Close(); err != nil {
			return fmt.Errorf("load persons: %w", err)
		}
		if b.attempt > 0 && slices.ContainsFunc(b.loaded, func(p *person) bool { return !locked[p.id] }) {
			return errMoved
		}
		return nil
	})
}

// scanIDs returns a function that adds the id of a row to ids.
func scanIDs(ids map[int64]bool) func(scan func(...any) error) error {
	return func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		ids[id] = true
		return err
	}
}

func scanAll(fn func(scanner) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			if err := fn(rows.Scan); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

func (s *postgresStore) save(ctx context.Context, b *batchState, merged func(context.Context) error) (bool, error) {
	c := b.diff()
	w := &pgWriter{ctx: ctx, project: b.project}
	err := s.db.PgxConn(ctx, func(conn *pgx.Conn) error {
		w.conn = conn
		w.lock(c)
		w.lockGroups(c.groups)
		w.create(c.created)
		w.link(c.links)
		w.groupTypes(b.groups.newTypes)
		w.groups(c.groups)
		w.addPersonless(b.newPersonless)
		w.move(c.merged)
		return w.err
	})
	if err != nil || w.conflict {
		return false, err
	}
	if len(b.merges) > 0 {
		if err := merged(ctx); err != nil {
			return false, err
		}
	}
	err = s.db.PgxConn(ctx, func(conn *pgx.Conn) error {
		w.conn = conn
		w.remove(c.merged)
		w.update(c.updated)
		return w.err
	})
	return err == nil, err
}

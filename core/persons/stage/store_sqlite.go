package stage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/db"
)

// sqliteStore is the batchStore on SQLite. Its one writing transaction excludes
// other writers, so that nothing changes between load and save.
type sqliteStore struct{ db *db.DB }

var errOutside = errors.New("persons: the stage needs a transaction")

func (s *sqliteStore) attempt(ctx context.Context, fn func(context.Context) (bool, error)) (bool, error) {
	return fn(ctx)
}

const sqliteLoad = `
	SELECT d.distinct_id, p.id, p.uuid, p.created_at, p.is_identified, p.version, p.properties
	FROM json_each(?1) w
	CROSS JOIN person_distinct_ids d ON d.project_id = ?2 AND d.distinct_id = w.value
	CROSS JOIN persons p ON p.id = d.person_id`

const sqliteLoadPersonless = `
	SELECT l.distinct_id FROM json_each(?1) w
	CROSS JOIN lone_distinct_ids l ON l.project_id = ?2 AND l.distinct_id = w.value`

const sqliteGroups = `
	SELECT g.slot, g.group_key, g.created_at, g.version, g.properties
	FROM json_each(?1) w
	CROSS JOIN group_types t ON t.project_id = ?2 AND t.name = w.value ->> 0
	CROSS JOIN project_groups g ON g.project_id = ?2 AND g.slot = t.slot AND g.group_key = w.value ->> 1`

func (s *sqliteStore) load(ctx context.Context, b *batchState, plan *loadPlan) error {
	tx := s.db.SQLTx(ctx)
	if tx == nil {
		return errOutside
	}
	rows, err := tx.QueryContext(ctx, sqliteLoad, jsonList(plan.ids), b.project)
	if err := eachRow(rows, err, b.scanPerson); err != nil {
		return fmt.Errorf("load persons: %w", err)
	}
	if len(plan.merged) > 0 {
		rows, err := tx.QueryContext(ctx, sqliteLoadPersonless, jsonList(plan.merged), b.project)
		if err := eachRow(rows, err, b.scanPersonless); err != nil {
			return fmt.Errorf("load distinct ids without a person: %w", err)
		}
	}
	if !plan.types {
		return nil
	}
	rows, err = tx.QueryContext(ctx, "SELECT name, slot FROM group_types WHERE project_id = ?", b.project)
	if err := eachRow(rows, err, b.groups.scanType); err != nil {
		return fmt.Errorf("load group types: %w", err)
	}
	if len(plan.groups) == 0 || len(b.groups.types) == 0 {
		return nil
	}
	rows, err = tx.QueryContext(ctx, sqliteGroups, jsonPairs(plan.groups), b.project)
	if err := eachRow(rows, err, b.groups.scanGroup); err != nil {
		return fmt.Errorf("load groups: %w", err)
	}
	return nil
}

func (s *sqliteStore) save(ctx context.Context, b *batchState, merged func(context.Context) error) (bool, error) {
	tx := s.db.SQLTx(ctx)
	c := b.diff()
	// Watching ctx costs one goroutine per statement. When ctx ends, the
	// transaction is rolled back and the next statement fails.
	w := &sqliteWriter{ctx: context.WithoutCancel(ctx), tx: tx, now: time.Now().UnixMicro(), project: b.project}
	w.create(c.created)
	w.link(c.links)
	w.groupTypes(b.groups.newTypes)
	w.groups(c.groups)
	w.addPersonless(b.newPersonless)
	w.move(c.merged)
	if w.err == nil && len(b.merges) > 0 {
		w.err = merged(ctx)
	}
	w.remove(c.merged)
	w.update(c.updated)
	return w.err == nil, w.err
}

// sqliteWriter runs statements once a row; the first error ends it.
type sqliteWriter struct {
	ctx     context.Context
	tx      *sql.Tx
	now     int64
	project int64
	err     error
}

// each prepares query and calls row n times to run it.
func (w *sqliteWriter) each(what, query string, n int, row func(i int, run func(args ...any) sql.Result)) {
	if w.err != nil || n == 0 {
		return
	}
	stmt, err := w.tx.PrepareContext(w.ctx, query)
	if err != nil {
		w.err = fmt.Errorf("%s: %w", what, err)
		return
	}
	defer func() { _ = stmt.Close() }()
	for i := 0; i < n && w.err == nil; i++ {
		row(i, func(args ...any) sql.Result {
			res, err := stmt.ExecContext(w.ctx, args...)
			if err != nil {
				w.err = fmt.Errorf("%s: %w", what, err)
			}
			return res
		})
	}
}

func (w *sqliteWriter) create(ps []*person) {
	w.each("create persons", `INSERT INTO persons (project_id, uuid, created_at, updated_at, is_identified, label, properties)
		VALUES (?, ?, ?, ?, ?, ?, ?)`, len(ps), func(i int, run func(...any) sql.Result) {
		r := ps[i].next
		res := run(w.project, ps[i].uuid, r.createdAt, w.now, r.identified, ps[i].searchText(), r.properties)
		if w.err == nil {
			ps[i].id, w.err = res.LastInsertId()
		}
	})
}

func (w *sqliteWriter) link(ls []link) {
	w.each("add distinct ids", `INSERT INTO person_distinct_ids (project_id, distinct_id, person_id, added_at)
		VALUES (?, ?, ?, ?)`, len(ls), func(i int, run func(...any) sql.Result) {
		run(w.project, ls[i].distinctID, ls[i].person.id, w.now+int64(ls[i].position))
	})
}

func (w *sqliteWriter) move(ms []merge) {
	w.each("move distinct ids", `UPDATE person_distinct_ids SET person_id = ? WHERE person_id = ?`,
		len(ms), func(i int, run func(...any) sql.Result) { run(ms[i].into.id, ms[i].from.id) })
}

func (w *sqliteWriter) remove(ms []merge) {
	w.each("remove merged persons", `DELETE FROM persons WHERE id = ?`,
		len(ms), func(i int, run func(...any) sql.Result) { run(ms[i].from.id) })
}

func (w *sqliteWriter) update(ps []*person) {
	w.each("update persons", `UPDATE persons SET created_at = ?, is_identified = ?, label = ?, properties = ?, updated_at = ?,
		version = version + 1 WHERE id = ?`, len(ps), func(i int, run func(...any) sql.Result) {
		r := ps[i].next
		run(r.createdAt, r.identified, ps[i].searchText(), r.properties, w.now, ps[i].id)
	})
}

func (w *sqliteWriter) addPersonless(ids []string) {
	w.each("add distinct ids without a person", `INSERT INTO lone_distinct_ids (project_id, distinct_id)
		VALUES (?, ?) ON CONFLICT DO NOTHING`, len(ids), func(i int, run func(...any) sql.Result) {
		run(w.project, ids[i])
	})
}

func (w *sqliteWriter) groupTypes(ts []groupType) {
	w.each("add group types", `INSERT INTO group_types (project_id, name, slot, created_at) VALUES (?, ?, ?, ?)`,
		len(ts), func(i int, run func(...any) sql.Result) {
			run(w.project, ts[i].name, ts[i].index, toMicros(ts[i].createdAt))
		})
}

func (w *sqliteWriter) groups(gs []*group) {
	w.each("write groups", `INSERT INTO project_groups (project_id, slot, group_key, created_at, label, properties)
		VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (project_id, slot, group_key)
		DO UPDATE SET label = excluded.label, properties = excluded.properties, version = project_groups.version + 1`,
		len(gs), func(i int, run func(...any) sql.Result) {
			run(w.project, gs[i].index, gs[i].key, gs[i].createdAt, gs[i].searchText(), gs[i].next)
		})
}

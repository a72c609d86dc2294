package stage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// pgWriter runs one statement for each kind of change. After the first error or
// conflict the others do nothing.
type pgWriter struct {
	ctx      context.Context
	conn     *pgx.Conn
	project  int64
	err      error
	conflict bool // another node has changed a row
}

func (w *pgWriter) skip(n int) bool { return n == 0 || w.err != nil || w.conflict }

// exec runs a statement that must affect n rows; fewer are a conflict.
func (w *pgWriter) exec(what string, n int, query string, args ...any) {
	tag, err := w.conn.Exec(w.ctx, query, args...)
	switch {
	case err != nil:
		w.err = fmt.Errorf("%s: %w", what, err)
	case tag.RowsAffected() < int64(n):
		w.conflict = true
	}
}

// lock locks the persons that change or get distinct ids. A changed version is a
// conflict.
func (w *pgWriter) lock(c *diff) {
	versions := map[int64]int64{}
	touch := func(p *person) {
		if p.id != 0 {
			versions[p.id] = p.version
		}
	}
	for _, p := range c.updated {
		touch(p)
	}
	for _, m := range c.merged {
		touch(m.from)
		touch(m.into)
	}
	for _, l := range c.links {
		touch(l.person)
	}
	if w.skip(len(versions)) {
		return
	}
	ids, want := slices.Sorted(maps.Keys(versions)), make([]int64, len(versions))
	for i, id := range ids {
		want[i] = versions[id]
	}
	w.exec("lock persons", len(ids), `SELECT 1 FROM unnest($1::bigint[], $2::bigint[]) AS w (id, version)
		CROSS JOIN LATERAL (SELECT FROM persons p WHERE p.id = w.id AND p.version = w.version LIMIT 1 FOR UPDATE) p`, ids, want)
}

func (w *pgWriter) lockGroups(gs []*group) {
	var slots []int32
	var versions []int64
	var keys []string
	for _, g := range gs {
		if g.stored != "" {
			slots, keys, versions = append(slots, int32(g.index)), append(keys, g.key), append(versions, g.version)
		}
	}
	if w.skip(len(keys)) {
		return
	}
	w.exec("lock groups", len(keys), `
		SELECT 1 FROM unnest($2::int[], $3::text[], $4::bigint[]) AS w (slot, group_key, version)
		CROSS JOIN LATERAL (SELECT FROM project_groups g WHERE g.project_id = $1 AND g.slot = w.slot
			AND g.group_key = w.group_key AND g.version = w.version LIMIT 1 FOR UPDATE) g`, w.project, slots, keys, versions)
}

func (w *pgWriter) create(ps []*person) {
	if w.skip(len(ps)) {
		return
	}
	byUUID := make(map[string]*person, len(ps))
	uuids, labels, props := make([]string, len(ps)), make([]*string, len(ps)), make([]string, len(ps))
	created, identified := make([]int64, len(ps)), make([]bool, len(ps))
	for i, p := range ps {
		byUUID[p.uuid] = p
		uuids[i], labels[i], props[i] = p.uuid, p.searchText(), p.next.properties
		created[i], identified[i] = p.next.createdAt, p.next.identified
	}
	// Ids are in the order of arrival, and rows are inserted in the order of uuids, so
	// that two nodes that create the same persons do not deadlock.
	rows, err := w.conn.Query(w.ctx, `
		WITH n AS MATERIALIZED (
			SELECT nextval(pg_get_serial_sequence('persons', 'id')) AS id, a.* FROM (
				SELECT * FROM unnest($3::text[], $4::bigint[], $5::bool[], $6::text[], $7::text[])
				WITH ORDINALITY AS u (uuid, created_at, is_identified, label, properties, place) ORDER BY place) AS a)
		INSERT INTO persons (id, project_id, uuid, created_at, updated_at, is_identified, label, properties)
		SELECT n.id, $1, n.uuid, n.created_at, $2, n.is_identified, n.label, n.properties FROM n ORDER BY n.uuid
		ON CONFLICT (project_id, uuid) DO NOTHING RETURNING uuid, id`,
		w.project, time.Now().UnixMicro(), uuids, created, identified, labels, props)
	if err != nil {
		w.err = fmt.Errorf("create persons: %w", err)
		return
	}
	var uuid string
	var id int64
	tag, err := pgx.ForEachRow(rows, []any{&uuid, &id}, func() error {
		byUUID[uuid].id = id
		return nil
	})
	if err != nil {
		w.err = fmt.Errorf("create persons: %w", err)
		return
	}
	w.conflict = tag.RowsAffected() < int64(len(ps))
}

func (w *pgWriter) link(ls []link) {
	if w.skip(len(ls)) {
		return
	}
	now := time.Now().UnixMicro()
	ids, persons, at := make([]string, len(ls)), make([]int64, len(ls)), make([]int64, len(ls))
	for i, l := range ls {
		ids[i], persons[i], at[i] = l.distinctID, l.person.id, now+int64(l.position)
	}
	w.exec("add distinct ids", len(ls), `INSERT INTO person_distinct_ids (project_id, distinct_id, person_id, added_at)
		SELECT $1, n.id, n.person, n.at FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS n (id, person, at)
		ON CONFLICT (project_id, distinct_id) DO NOTHING`, w.project, ids, persons, at)
}

func (w *pgWriter) groupTypes(ts []groupType) {
	for _, t := range ts {
		if w.skip(1) {
			return
		}
		w.exec("add group types", 1, `INSERT INTO group_types (project_id, name, slot, created_at)
			VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, w.project, t.name, t.index, toMicros(t.createdAt))
	}
}

// groups updates the stored groups, which are locked, and inserts the new ones.
func (w *pgWriter) groups(gs []*group) {
	var old, fresh groupRows
	for _, g := range gs {
		if g.stored != "" {
			old.add(g)
		} else {
			fresh.add(g)
		}
	}
	w.putGroups(&old, `DO UPDATE SET label = excluded.label, properties = excluded.properties,
		version = project_groups.version + 1`)
	w.putGroups(&fresh, `DO NOTHING`)
}

func (w *pgWriter) putGroups(r *groupRows, conflict string) {
	if w.skip(len(r.keys)) {
		return
	}
	w.exec("write groups", len(r.keys), `INSERT INTO project_groups (project_id, slot, group_key, label, properties, created_at)
		SELECT $1, n.slot, n.group_key, n.label, n.properties, n.created_at
		FROM unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::bigint[])
			AS n (slot, group_key, label, properties, created_at)
		ON CONFLICT (project_id, slot, group_key) `+conflict, w.project, r.slots, r.keys, r.labels, r.props, r.created)
}

// groupRows holds groups by column.
type groupRows struct {
	slots       []int32
	keys, props []string
	labels      []*string
	created     []int64
}

func (r *groupRows) add(g *group) {
	r.slots, r.keys = append(r.slots, int32(g.index)), append(r.keys, g.key)
	r.labels, r.props, r.created = append(r.labels, g.searchText()), append(r.props, g.next), append(r.created, g.createdAt)
}

func (w *pgWriter) addPersonless(ids []string) {
	if w.skip(len(ids)) {
		return
	}
	w.exec("add distinct ids without a person", 0, `INSERT INTO lone_distinct_ids (project_id, distinct_id)
		SELECT $1, n.id FROM unnest($2::text[]) AS n (id) ON CONFLICT DO NOTHING`, w.project, ids)
}

func (w *pgWriter) move(ms []merge) {
	if w.skip(len(ms)) {
		return
	}
	q := &pgx.Batch{}
	for _, m := range ms {
		q.Queue(`UPDATE person_distinct_ids SET person_id = $1 WHERE person_id = $2`, m.into.id, m.from.id)
	}
	if err := w.conn.SendBatch(w.ctx, q).Close(); err != nil {
		w.err = fmt.Errorf("move distinct ids: %w", err)
	}
}

func (w *pgWriter) remove(ms []merge) {
	if w.skip(len(ms)) {
		return
	}
	ids := make([]int64, len(ms))
	for i, m := range ms {
		ids[i] = m.from.id
	}
	w.exec("remove merged persons", len(ids), `DELETE FROM persons WHERE id = ANY($1)`, ids)
}

// update updates locked rows. It is an insert whose every row conflicts: that form
// finds each row by its id, whatever the statistics say.
func (w *pgWriter) update(ps []*person) {
	if w.skip(len(ps)) {
		return
	}
	ids, created := make([]int64, len(ps)), make([]int64, len(ps))
	uuids, labels := make([]string, len(ps)), make([]*string, len(ps))
	props, identified := make([]string, len(ps)), make([]bool, len(ps))
	for i, p := range ps {
		ids[i], uuids[i], labels[i] = p.id, p.uuid, p.searchText()
		created[i], props[i], identified[i] = p.next.createdAt, p.next.properties, p.next.identified
	}
	w.exec("update persons", len(ps), `
		INSERT INTO persons (id, project_id, uuid, created_at, updated_at, is_identified, label, properties)
		SELECT n.id, $1, n.uuid, n.created_at, $2, n.is_identified, n.label, n.properties
		FROM unnest($3::bigint[], $4::text[], $5::bigint[], $6::bool[], $7::text[], $8::text[])
			AS n (id, uuid, created_at, is_identified, label, properties)
		ON CONFLICT (id) DO UPDATE SET label = excluded.label, properties = excluded.properties,
			created_at = excluded.created_at, is_identified = excluded.is_identified, updated_at = excluded.updated_at, version = persons.version + 1`,
		w.project, time.Now().UnixMicro(), ids, uuids, created, identified, labels, props)
}

package stage

import (
	"context"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/db"
)

// batchStore loads and saves batches. Each dialect has its own implementation
// in plain SQL: the statements are the measured hot path of the stage, work on
// arrays of keys, and on PostgreSQL go in one round trip.
type batchStore interface {
	// attempt runs fn, and undoes its writes if it returns false.
	attempt(ctx context.Context, fn func(context.Context) (bool, error)) (bool, error)
	// load fills b with the stored rows of plan.
	load(ctx context.Context, b *batchState, plan *loadPlan) error
	// save writes the changes of b. It returns false if the rows changed since
	// b was loaded. merged runs when the merged persons still exist.
	save(ctx context.Context, b *batchState, merged func(context.Context) error) (bool, error)
}

func newBatchStore(d *db.DB) batchStore {
	if d.Postgres() {
		return &postgresStore{db: d}
	}
	return &sqliteStore{db: d}
}

// loadedPerson is a row of the query that loads persons.
type loadedPerson struct {
	distinctID string
	id         int64
	uuid       string
	createdAt  int64
	identified bool
	version    int64
	properties string
}

// addLoaded assigns the row's distinct id to its person, which an earlier row
// may have added.
func (b *batchState) addLoaded(r *loadedPerson) {
	p := b.byID[r.id]
	if p == nil {
		p = &person{
			id: r.id, uuid: r.uuid, createdAt: r.createdAt, identified: r.identified, version: r.version,
			stored: row{properties: r.properties, createdAt: r.createdAt, identified: r.identified},
		}
		b.byID[r.id] = p
		b.loaded = append(b.loaded, p)
	}
	b.ids[r.distinctID] = p
}

// diff is the difference between a batchState and the database. Rows that other
// nodes may write too are sorted, so that all nodes write in the same order;
// persons are in order of creation.
type diff struct {
	created []*person
	updated []*person
	merged  []merge // of stored persons; into is the remaining person
	links   []link
	groups  []*group
}

func (b *batchState) diff() *diff {
	d := &diff{links: b.links}
	for _, p := range b.created {
		if p.into == nil {
			p.next = p.row()
			d.created = append(d.created, p)
		}
	}
	for _, p := range b.loaded {
		if p.into != nil {
			d.merged = append(d.merged, merge{p, p.root()})
		} else if p.next = p.row(); p.next != p.stored {
			d.updated = append(d.updated, p)
		}
	}
	for i := range d.links {
		d.links[i].position, d.links[i].person = i, d.links[i].person.root()
	}
	for _, g := range b.groups.list {
		if g.next = g.props.JSON(); g.next != g.stored {
			d.groups = append(d.groups, g)
		}
	}
	slices.Sort(b.newPersonless)
	slices.SortFunc(d.links, func(x, y link) int { return strings.Compare(x.distinctID, y.distinctID) })
	slices.SortFunc(d.groups, func(x, y *group) int {
		if x.index != y.index {
			return x.index - y.index
		}
		return strings.Compare(x.key, y.key)
	})
	return d
}

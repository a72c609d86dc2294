package persons

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// store is the tables as everybody but the stage reads and writes them.
type store struct {
	db            *db.DB
	person, group hot
}

func newStore(d *db.DB) *store {
	return &store{db: d, person: hot{query: readPerson}, group: hot{query: readGroup}}
}

// stageStore loads and writes what the stage works on. There is one for each
// dialect, because the stage is where the time goes.
type stageStore interface {
	// attempt runs fn so that all it wrote is undone when it reports false.
	attempt(ctx context.Context, fn func(context.Context) (bool, error)) (bool, error)
	// load fills b with what is stored about w.
	load(ctx context.Context, b *book, w *wanted) error
	// save writes what b thought of; false when what b was loaded with is no
	// longer true. moved runs when the merges can be followed.
	save(ctx context.Context, b *book, moved func(context.Context) error) (bool, error)
}

func newStageStore(d *db.DB) stageStore {
	if d.Postgres() {
		return &stagePostgres{db: d}
	}
	return &stageSQLite{db: d}
}

// loadedPerson is one row of the query that loads persons.
type loadedPerson struct {
	distinctID string
	id         int64
	uuid       string
	createdAt  int64
	identified bool
	version    int64
	properties string
}

// knows gives the row's distinct id to its person, which may be known already
// by another distinct id.
func (b *book) knows(r *loadedPerson) {
	p := b.byID[r.id]
	if p == nil {
		p = &person{
			id: r.id, uuid: r.uuid, createdAt: r.createdAt, identified: r.identified, version: r.version,
			loaded: row{properties: r.properties, createdAt: r.createdAt, identified: r.identified},
		}
		b.byID[r.id] = p
		b.known = append(b.known, p)
	}
	b.ids[r.distinctID] = p
}

// changes is what a book wants written. What other nodes may write too is
// sorted, so that all write in the same order; persons are as they were made.
type changes struct {
	created []*person
	updated []*person
	gone    []merge // stored persons that became part of another; into is final
	links   []link
	groups  []*group
}

func (b *book) changes() *changes {
	c := &changes{links: b.links}
	for _, p := range b.created {
		if p.into == nil {
			p.next = p.row()
			c.created = append(c.created, p)
		}
	}
	for _, p := range b.known {
		if p.into != nil {
			c.gone = append(c.gone, merge{p, p.final()})
		} else if p.next = p.row(); p.next != p.loaded {
			c.updated = append(c.updated, p)
		}
	}
	for i := range c.links {
		c.links[i].place, c.links[i].to = i, c.links[i].to.final()
	}
	for _, g := range b.groups.list {
		if g.next = g.props.text(); g.next != g.stored {
			c.groups = append(c.groups, g)
		}
	}
	slices.Sort(b.loners)
	slices.SortFunc(c.links, func(x, y link) int { return strings.Compare(x.distinctID, y.distinctID) })
	slices.SortFunc(c.groups, func(x, y *group) int {
		if x.index != y.index {
			return x.index - y.index
		}
		return strings.Compare(x.key, y.key)
	})
	return c
}

// txOf is the transaction in ctx without bun, for statements that run often.
func txOf(ctx context.Context, d *db.DB) *sql.Tx {
	if tx, ok := d.Write(ctx).(bun.Tx); ok {
		return tx.Tx
	}
	return nil
}

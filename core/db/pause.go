package db

import (
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

// PauseEvery adds a condition to a query that reads many rows. It is true for each row:
// SQLite pauses in it, as scan.Pause does, once in that many values of an integer column
// on average, and at most every half millisecond. A statement of SQLite otherwise keeps its
// processor until it has a row to return, and requests wait for it. SQLite should take
// about a millisecond for that many rows. PostgreSQL has processors of its own: there
// nothing is added.
func PauseEvery(q *bun.SelectQuery, rows int, column string) *bun.SelectQuery {
	if q.Dialect().Name() != dialect.SQLite {
		return q
	}
	return q.Where("(? % ? <> 0 OR "+SQLitePauseFunction+"())", bun.Ident(column), rows)
}

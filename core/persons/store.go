package persons

import (
	"time"

	"github.com/guidonhq/guidon/core/db"
)

// store reads and writes the tables for everything but the ingestion stage,
// with one method for each query.
type store struct {
	db            *db.DB
	person, group preparedRead
}

func newStore(d *db.DB) *store {
	return &store{db: d, person: preparedRead{query: readPerson}, group: preparedRead{query: readGroup}}
}

// toMicros returns t as the database keeps it.
func toMicros(t time.Time) int64 { return t.UnixMicro() }

// toTime is the reverse of toMicros.
func toTime(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

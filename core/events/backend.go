package events

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events/dictionaries"
)

// Backend stores and finds events. The rows of events are numbered in the order in which
// they become visible, over all projects. Methods join the transaction in their context
// as far as they use the database. The records that a read returns have their current
// persons.
type Backend interface {
	// Insert writes the events that are not stored yet, inside the transaction in
	// ctx, and reports for each whether it did.
	Insert(ctx context.Context, list []Insertion) ([]bool, error)
	// Known reports for each whether it is stored, inside the transaction in ctx.
	Known(ctx context.Context, ids []Identity) ([]bool, error)

	// List returns at most limit events behind the cursor of f, newest first. It
	// ignores the property filters except for reading what they need.
	List(ctx context.Context, projectID int64, f Filter, limit int) ([]Record, error)
	// Get returns the event with a uuid, with its person, or none.
	Get(ctx context.Context, projectID int64, id uuid.UUID) ([]Record, error)
	// After returns at most limit events behind a row in the order of rows; project 0
	// means all.
	After(ctx context.Context, projectID, after int64, limit int) ([]Record, error)
	Export(ctx context.Context, projectID int64, q ExportQuery, limit int) ([]Record, error)

	// Last returns the last row that is visible.
	Last(ctx context.Context) (int64, error)
	Checkpoint(ctx context.Context, projectID int64) (Checkpoint, error)
	Count(ctx context.Context, projectID int64, f Filter) (int64, error)
	Counts(ctx context.Context, q *CountQuery) ([]Count, error)
	LastSeen(ctx context.Context, projectID int64, distinctIDs []string) (map[string]time.Time, error)
	Projects(ctx context.Context) ([]int64, error)
	Names(ctx context.Context, projectID int64) ([]string, error)
	Oldest(ctx context.Context, projectID int64, event string, since time.Time) (time.Time, bool, error)

	CountHistory(ctx context.Context, q *HistoryQuery, width time.Duration) (HistoryCounts, error)
	DistinctIDs(ctx context.Context, q *HistoryQuery) (ids map[string]struct{}, ambiguous bool, err error)
	ScanHistory(ctx context.Context, q *HistoryQuery, fn func(*HistoryEvent) error) error

	// Erase deletes the events of distinct ids, and corrects what was counted.
	Erase(ctx context.Context, projectID int64, distinctIDs []string) (int64, error)
	CountExpired(ctx context.Context, x Expiry) (int64, error)
	// DeleteExpired deletes old events, the oldest first. It is called again while it
	// returns limit or more.
	DeleteExpired(ctx context.Context, x Expiry, limit int) (int, error)
}

// Runner is a Backend that works in the background between Start and Stop.
type Runner interface {
	Start()
	Stop()
}

// StatusReporter is a Backend that can fail on its own. Its status encodes as JSON.
type StatusReporter interface{ Status() any }

// sqlBackend keeps the events in the database.
type sqlBackend struct {
	writer
	*store
	historyStore
}

var _ Backend = (*sqlBackend)(nil)

func newSQLBackend(d *db.DB, dicts *dictionaries.Store, shared *Shared) *sqlBackend {
	return &sqlBackend{newWriter(d), &store{d, dicts, shared}, historyStore{d, dicts}}
}

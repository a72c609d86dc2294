// Package erased keeps the erasures of events in ClickHouse that are not finished, in the table
// event_erasures of PostgreSQL.
//
// An erasure is open until ClickHouse has deleted its events: queries leave them out. It stays
// in the table for a while after that, so that its events are deleted once more: an insertion
// that was sent before may arrive late.
package erased

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// Erasure is a row of event_erasures.
type Erasure struct {
	ID         int64
	ProjectID  int64
	Encoded    string `bun:"distinct_ids"` // a JSON array
	ThroughRow int64
}

// DistinctIDs returns the ids whose events are erased.
func (e *Erasure) DistinctIDs() (ids []string, err error) {
	if err := json.Unmarshal([]byte(e.Encoded), &ids); err != nil {
		return nil, fmt.Errorf("read erasure %d: %w", e.ID, err)
	}
	return ids, nil
}

// Condition selects the events of e in ClickHouse.
func (e *Erasure) Condition() (string, error) {
	ids, err := e.DistinctIDs()
	return fmt.Sprintf("(project_id = %d AND distinct_id IN (%s) AND row <= %d)", e.ProjectID, wire.QuoteAll(ids), e.ThroughRow), err
}

// Store keeps erasures. Its methods join the transaction of their context.
type Store struct{ db *db.DB }

// New returns a Store in a PostgreSQL database.
func New(d *db.DB) *Store { return &Store{d} }

const columns = "id, project_id, distinct_ids, through_row"

// Open returns the open erasures of a project; 0 means all.
func (s *Store) Open(ctx context.Context, projectID int64) (out []Erasure, err error) {
	q := s.db.Read(ctx).NewSelect().TableExpr("event_erasures").ColumnExpr(columns).Where("deleted_at IS NULL").OrderExpr("id")
	if projectID != 0 {
		q = q.Where("project_id = ?", projectID)
	}
	return out, q.Scan(ctx, &out)
}

// Deleted returns the erasures whose events were deleted a time ago.
func (s *Store) Deleted(ctx context.Context, ago time.Duration) (out []Erasure, err error) {
	return out, s.db.Read(ctx).NewSelect().TableExpr("event_erasures").ColumnExpr(columns).
		Where("deleted_at <= clock_timestamp() - make_interval(secs => ?)", ago.Seconds()).OrderExpr("id").Scan(ctx, &out)
}

// Add records an erasure of the events up to a row.
func (s *Store) Add(ctx context.Context, projectID int64, distinctIDs []string, through int64) error {
	list, err := json.Marshal(distinctIDs)
	if err != nil {
		return err
	}
	_, err = s.db.Write(ctx).NewRaw("INSERT INTO event_erasures (project_id, distinct_ids, through_row) VALUES (?, ?, ?)", projectID, string(list), through).Exec(ctx)
	return err
}

// MarkDeleted records that ClickHouse has deleted the events.
func (s *Store) MarkDeleted(ctx context.Context, id int64) error {
	_, err := s.db.Write(ctx).NewUpdate().TableExpr("event_erasures").Set("deleted_at = clock_timestamp()").Where("id = ?", id).Exec(ctx)
	return err
}

// Remove forgets an erasure.
func (s *Store) Remove(ctx context.Context, id int64) error {
	_, err := s.db.Write(ctx).NewDelete().TableExpr("event_erasures").Where("id = ?", id).Exec(ctx)
	return err
}

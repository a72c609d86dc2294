package events

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/guidonhq/guidon/core/db"
)

// writerPostgres copies the rows into a temporary table and inserts the new ones
// from there: COPY is the fastest way in but cannot skip conflicts. The temporary
// table belongs to its connection and is emptied at the end of each transaction.
type writerPostgres struct{ db *db.DB }

// These statements are raw: bun cannot express a temporary table or COPY.
const (
	pgPrepare = `CREATE TEMPORARY TABLE IF NOT EXISTS arriving_events (
			place INT, project_id BIGINT, uuid UUID, event TEXT, distinct_id TEXT, person_uuid UUID, timestamp BIGINT,
			received_at BIGINT, current_url TEXT, flag_key TEXT, flag_response TEXT,
			elements_chain TEXT, properties TEXT) ON COMMIT DELETE ROWS;
		DELETE FROM arriving_events`
	pgInsert = `
		INSERT INTO events (project_id, uuid, event, distinct_id, person_uuid, timestamp, received_at,
			current_url, flag_key, flag_response, elements_chain, properties)
		SELECT project_id, uuid, event, distinct_id, person_uuid, timestamp, received_at,
			current_url, flag_key, flag_response, elements_chain, properties
		FROM arriving_events ORDER BY place
		ON CONFLICT (project_id, uuid) DO NOTHING RETURNING project_id, uuid`
)

var arriving = []string{"place", "project_id", "uuid", "event", "distinct_id", "person_uuid", "timestamp",
	"received_at", "current_url", "flag_key", "flag_response", "elements_chain", "properties"}

func (w *writerPostgres) Insert(ctx context.Context, list []Insertion) ([]bool, error) {
	if txOf(ctx, w.db) == nil {
		return nil, errNoTransaction
	}
	places := make(map[Identity]int, len(list))
	for i := range list {
		id := Identity{list[i].Event.ProjectID, list[i].UUID}
		if _, repeat := places[id]; !repeat {
			places[id] = i
		}
	}
	fresh := make([]bool, len(list))
	err := w.db.PgxConn(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, pgPrepare); err != nil {
			return fmt.Errorf("prepare the temporary table: %w", err)
		}
		if _, err := conn.CopyFrom(ctx, pgx.Identifier{"arriving_events"}, arriving, &copier{list: list, next: -1}); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		rows, err := conn.Query(ctx, pgInsert)
		if err != nil {
			return err
		}
		var id Identity
		_, err = pgx.ForEachRow(rows, []any{&id.Project, &id.UUID}, func() error {
			fresh[places[id]] = true
			return nil
		})
		return err
	})
	return fresh, err
}

// Identity identifies an event.
type Identity struct {
	Project int64
	UUID    uuid.UUID
}

// copier is the source of rows for COPY.
type copier struct {
	list []Insertion
	next int
	vals [13]any
}

func (c *copier) Next() bool {
	c.next++
	return c.next < len(c.list)
}

func (c *copier) Err() error { return nil }

func (c *copier) Values() ([]any, error) {
	r := &c.list[c.next]
	c.vals = [13]any{
		int32(c.next), r.Event.ProjectID, pgtype.UUID{Bytes: r.UUID, Valid: true}, storable(r.Event.Name), storable(r.Event.DistinctID),
		pgtype.UUID{Bytes: r.Person, Valid: r.HasPerson}, r.Event.Timestamp.UnixMicro(), r.Event.ReceivedAt.UnixMicro(),
		pgText(r.Columns.CurrentURL), pgText(r.Columns.FlagKey),
		pgText(r.Columns.FlagResponse), pgText(storable(r.Event.ElementsChain)), storable(r.Properties),
	}
	return c.vals[:], nil
}

func pgText(s string) pgtype.Text { return pgtype.Text{String: s, Valid: s != ""} }

package events

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// eraseChunk is how many events one transaction deletes, so that the worker can
// write in between.
const eraseChunk = 1000

func (s *store) Erase(ctx context.Context, projectID int64, distinctIDs []string) (total int64, err error) {
	for ids := range slices.Chunk(distinctIDs, 200) {
		for {
			n, err := s.eraseOneChunk(ctx, projectID, ids)
			if err != nil {
				return total, err
			}
			if total += n; n < eraseChunk {
				break
			}
		}
	}
	return total, nil
}

// eraseOneChunk deletes a chunk, and records and corrects it in the same
// transaction. The record locks the project, so that two erasures never correct
// for the same event.
func (s *store) eraseOneChunk(ctx context.Context, projectID int64, distinctIDs []string) (n int64, err error) {
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		var found []int64
		q := s.db.Write(ctx).NewSelect().TableExpr("events").Column("id").
			Where("project_id = ? AND distinct_id IN (?)", projectID, bun.List(distinctIDs)).Limit(eraseChunk)
		if err := q.Scan(ctx, &found); err != nil || len(found) == 0 {
			return err
		}
		e := &Erased{ProjectID: projectID}
		if err := s.shared.recordErased(ctx, e, 1, 0); err != nil {
			return err
		}
		if e.Events, err = s.erasedEvents(ctx, projectID, found); err != nil {
			return err
		}
		n = int64(len(e.Events))
		if e.Owned, err = s.shared.haveOwners(ctx, projectID, distinctIDs); err != nil {
			return err
		}
		if err := s.deleteRows(ctx, found); err != nil {
			return err
		}
		return s.shared.callHooks(ctx, e)
	})
	return n, err
}

// erasedRow is the part of an event that decides which actions it fits.
type erasedRow struct {
	ID            int64
	UUID          uuid.UUID
	Event         string
	DistinctID    string
	Timestamp     int64
	ReceivedAt    int64
	ElementsChain string
	CurrentURL    string
	Properties    string // compressed until plainErased
}

func (s *store) erasedEvents(ctx context.Context, projectID int64, ids []int64) ([]HistoryEvent, error) {
	var rows []erasedRow
	err := s.db.Write(ctx).NewSelect().TableExpr("events").
		Column("id", "uuid", "event", "distinct_id", "timestamp", "received_at", "properties").
		ColumnExpr("coalesce(elements_chain, '') AS elements_chain").ColumnExpr("coalesce(current_url, '') AS current_url").Where("id IN (?)", bun.List(ids)).Scan(ctx, &rows)
	if err == nil {
		err = s.plainErased(ctx, rows)
	}
	out := make([]HistoryEvent, len(rows))
	for i := range rows {
		r, ev := &rows[i], &out[i].Event
		out[i].Row = r.ID
		ev.UUID, ev.ProjectID, ev.Name, ev.DistinctID = r.UUID.String(), projectID, r.Event, r.DistinctID
		ev.Timestamp, ev.ReceivedAt = time.UnixMicro(r.Timestamp).UTC(), time.UnixMicro(r.ReceivedAt).UTC()
		ev.ElementsChain, ev.Properties = r.ElementsChain, json.RawMessage(r.Properties)
	}
	return out, err
}

// deleteRows deletes events. SQLite would give the id of a deleted last row to the
// next event, and counts up to that id would miss it: an empty row without a
// project stays in its place until it is not the last one.
func (s *store) deleteRows(ctx context.Context, ids []int64) error {
	w := s.db.Write(ctx)
	if s.db.Postgres() {
		_, err := w.NewDelete().TableExpr("events").Where("id IN (?)", bun.List(ids)).Exec(ctx)
		return err
	}
	last, err := s.Last(ctx)
	if err != nil {
		return err
	}
	_, err = w.NewDelete().TableExpr("events").Where("id <> ?", last).
		WhereGroup(" AND ", func(q *bun.DeleteQuery) *bun.DeleteQuery {
			return q.Where("id IN (?)", bun.List(ids)).WhereOr("project_id = ?", allProjects)
		}).Exec(ctx)
	if err != nil || !slices.Contains(ids, last) {
		return err
	}
	_, err = w.NewUpdate().TableExpr("events").Set("project_id = ?", allProjects).Set("uuid = randomblob(16)").
		Set("event = '', distinct_id = '', properties = '{}', timestamp = 0, received_at = 0").
		Set("person_uuid = NULL, current_url = NULL, host = NULL, pathname = NULL, flag_key = NULL, flag_response = NULL, elements_chain = NULL").
		Where("id = ?", last).Exec(ctx)
	return err
}

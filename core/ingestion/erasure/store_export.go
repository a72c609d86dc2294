package erasure

import (
	"context"
	"encoding/hex"
	"fmt"
)

// records returns the erased ids, each once, with its latest erasures.
func (s *store) records(ctx context.Context) ([]Record, error) {
	var rows []idRow
	err := s.db.Read(ctx).NewSelect().Model((*idRow)(nil)).Column("project_id", "id_hash").ColumnExpr("max(person_at) AS person_at").
		ColumnExpr("max(events_at) AS events_at").Group("project_id", "id_hash").Order("project_id", "id_hash").Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read erased ids: %w", err)
	}
	out := make([]Record, len(rows))
	for i := range rows {
		m := rows[i].mark()
		out[i] = Record{ProjectID: rows[i].ProjectID, Hash: hex.EncodeToString(rows[i].IDHash), PersonAt: m.personAt, EventsAt: m.eventsAt}
	}
	return out, nil
}

// idsPerPage is the number of distinct ids that are read at a time.
const idsPerPage = 10_000

// eachID calls fn with each distinct id of a project, and the number of its person, 0
// for an id without one.
func (s *store) eachID(ctx context.Context, projectID int64, fn func(person int64, distinctID string) error) error {
	for _, table := range []struct{ name, person string }{{"person_distinct_ids", "person_id"}, {"lone_distinct_ids", "0"}} {
		for after, first := "", true; ; first = false {
			var rows []struct {
				DistinctID string
				PersonID   int64
			}
			q := s.db.Read(ctx).NewSelect().Table(table.name).Column("distinct_id").ColumnExpr(table.person+" AS person_id").
				Where("project_id = ?", projectID).Order("distinct_id").Limit(idsPerPage)
			if !first {
				q = q.Where("distinct_id > ?", after)
			}
			if err := q.Scan(ctx, &rows); err != nil {
				return fmt.Errorf("read distinct ids: %w", err)
			}
			for _, r := range rows {
				after = r.DistinctID
				if err := fn(r.PersonID, r.DistinctID); err != nil {
					return err
				}
			}
			if len(rows) < idsPerPage {
				break
			}
		}
	}
	return nil
}

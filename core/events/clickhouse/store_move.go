package clickhouse

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/events/clickhouse/personcolumn"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// sourceRow is a row of the table of events in the database.
type sourceRow struct {
	ID            int64
	ProjectID     int64
	UUID          uuid.UUID
	Event         string
	DistinctID    string
	PersonUUID    *uuid.UUID
	Timestamp     int64
	ReceivedAt    int64
	CurrentURL    string
	FlagKey       string
	FlagResponse  string
	ElementsChain string
	Properties    []byte // SQLite: text, or compressed
}

// lastSourceRow returns the last row of the table of events; 0 if it is empty.
func (m *move) lastSourceRow(ctx context.Context) (row int64, err error) {
	err = m.source.Read(ctx).NewSelect().TableExpr("events").ColumnExpr("coalesce(max(id), 0)").Scan(ctx, &row)
	return row, err
}

// sourceFigures returns the figures of the rows in (low, high]. Rows without a project keep the
// place of an erased event.
func (m *move) sourceFigures(ctx context.Context, low, high int64) (map[figuresKey]figures, error) {
	var rows []struct{ Chunk, ProjectID, Events, Ids, Seconds int64 }
	err := m.source.Read(ctx).NewSelect().TableExpr("events").
		ColumnExpr("(id - 1) / ? AS chunk, project_id, count(*) AS events", m.options.chunk).
		ColumnExpr("CAST(sum(id) AS BIGINT) AS ids, CAST(sum(timestamp / 1000000) AS BIGINT) AS seconds").
		Where("id > ? AND id <= ? AND project_id > 0", low, high).GroupExpr("1, 2").Scan(ctx, &rows)
	out := make(map[figuresKey]figures, len(rows))
	for _, r := range rows {
		out[figuresKey{r.Chunk, r.ProjectID}] = figures{r.Events, r.Ids, r.Seconds}
	}
	return out, err
}

// storedFigures returns those of ClickHouse.
func (m *move) storedFigures(ctx context.Context, low, high int64) (map[figuresKey]figures, error) {
	out := map[figuresKey]figures{}
	return out, m.client.Query(ctx, fmt.Sprintf("SELECT toInt64(intDiv(row - 1, %d)) AS chunk, project_id, toInt64(count()), toInt64(sum(row)), toInt64(sum(intDiv(timestamp, 1000000))) FROM %s WHERE row > %d AND row <= %d GROUP BY chunk, project_id",
		m.options.chunk, eventTable, low, high), func(r *wire.Reader) error {
		key := figuresKey{r.Int(), r.Int()}
		out[key] = figures{r.Int(), r.Int(), r.Int()}
		return nil
	})
}

func (m *move) sourcePositions(ctx context.Context, low, high int64) (out []position, err error) {
	var rows []sourceRow
	err = m.source.Read(ctx).NewSelect().TableExpr("events").Column("id", "project_id", "uuid").
		Where("id > ? AND id <= ? AND project_id > 0", low, high).Scan(ctx, &rows)
	for i := range rows {
		out = append(out, position{rows[i].ID, rows[i].ProjectID, rows[i].UUID})
	}
	return out, err
}

// readSource calls fn for each event of the source in (low, high], in their order.
func (m *move) readSource(ctx context.Context, low, high int64, fn func(*event) error) error {
	for low < high {
		var rows []sourceRow
		err := m.source.Read(ctx).NewSelect().TableExpr("events").
			Column("id", "project_id", "uuid", "event", "distinct_id", "person_uuid", "timestamp", "received_at", "properties").
			ColumnExpr("coalesce(current_url, '') AS current_url, coalesce(flag_key, '') AS flag_key").
			ColumnExpr("coalesce(flag_response, '') AS flag_response, coalesce(elements_chain, '') AS elements_chain").
			Where("id > ? AND id <= ? AND project_id > 0", low, high).OrderExpr("id").Limit(movePage).Scan(ctx, &rows)
		if err != nil {
			return fmt.Errorf("read the events of the database: %w", err)
		}
		for i := range rows {
			e, err := m.sourceEvent(ctx, &rows[i])
			if err != nil {
				return err
			}
			if err := fn(&e); err != nil {
				return err
			}
		}
		if len(rows) < movePage {
			return nil
		}
		low = rows[len(rows)-1].ID
	}
	return nil
}

func (m *move) sourceEvent(ctx context.Context, r *sourceRow) (event, error) {
	e := event{
		project: r.ProjectID, name: r.Event, at: r.Timestamp, row: r.ID, uuid: r.UUID, distinctID: r.DistinctID, received: r.ReceivedAt - r.Timestamp,
		url: r.CurrentURL, flagKey: r.FlagKey, response: r.FlagResponse, chain: r.ElementsChain,
	}
	if r.PersonUUID != nil {
		e.person = personcolumn.Encode(*r.PersonUUID, e.project, e.distinctID)
	}
	if len(r.Properties) == 0 || r.Properties[0] >= ' ' {
		e.properties = string(r.Properties)
		return e, nil
	}
	text, err := m.decoder.Decode(ctx, r.Properties, []byte(r.DistinctID), []byte(r.CurrentURL))
	if err != nil {
		return e, fmt.Errorf("properties of event %s (row %d) of the database: %w", r.UUID, r.ID, err)
	}
	e.properties = string(text)
	return e, nil
}

// compareRows compares all columns of the rows in (low, high]. Rows that ClickHouse alone has
// count in the numbers of the projects.
func (m *move) compareRows(ctx context.Context, low, high int64) error {
	seed := maphash.MakeSeed()
	hashes := map[int64]uint64{}
	var buf []byte
	err := m.client.Query(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE row > %d AND row <= %d", columnNames(eventColumns), eventTable, low, high), func(r *wire.Reader) error {
		if e := readEvent(r); r.Err == nil {
			buf = e.append(buf[:0])
			hashes[e.row] = maphash.Bytes(seed, buf)
		}
		return r.Err
	})
	if err != nil {
		return err
	}
	var missing []event
	err = m.readSource(ctx, low, high, func(e *event) error {
		hash, ok := hashes[e.row]
		buf = e.append(buf[:0])
		switch {
		case !ok && m.own:
			missing = append(missing, event{project: e.project, uuid: e.uuid})
		case !ok:
			return fmt.Errorf("%w: ClickHouse has no event %s (row %d)", ErrMoveDiffers, e.uuid, e.row)
		case hash != maphash.Bytes(seed, buf):
			return fmt.Errorf("%w: event %s (row %d)", ErrMoveDiffers, e.uuid, e.row)
		}
		return nil
	})
	if err != nil || len(missing) == 0 {
		return err
	}
	left, err := m.withoutKnown(ctx, slices.Clone(missing))
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%w: ClickHouse has no event %s", ErrMoveDiffers, left[0].uuid)
	}
	m.addLeft(missing, 1)
	return err
}

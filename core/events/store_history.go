package events

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/rowcodec"
	"github.com/guidonhq/guidon/core/events/dictionaries"
)

// historyStore answers history queries. Each query is split into subqueries; see
// splitQuery.
type historyStore struct {
	db           *db.DB
	dictionaries *dictionaries.Store
}

// CountHistory reads the matching entries of the index on SQLite, which sorts them for a
// GROUP BY, and lets Postgres group them.
func (s historyStore) CountHistory(ctx context.Context, a *HistoryQuery, width time.Duration) (HistoryCounts, error) {
	t := HistoryCounts{Events: map[int64]int64{}}
	queries := []string{s.db.Read(ctx).NewSelect().TableExpr("events").ColumnExpr("coalesce(max(id), 0)").String()}
	for _, p := range s.splitQuery(a) {
		queries = append(queries, p.countQuery(s.db.Read(ctx), a, width))
	}
	divisor := width.Microseconds()
	if s.db.Postgres() {
		divisor = 1
	}
	err := s.db.Scan(ctx, queries, func(query int, r *db.Row) error {
		switch {
		case query == 0:
			t.Row = r.Int(0)
		case r.Int(countedCertain) == 0:
			t.Ambiguous += r.Int(countedEvents)
		default:
			t.Events[r.Int(countedAt)/divisor] += r.Int(countedEvents)
		}
		return nil
	})
	return t, err
}

// The columns of countQuery.
const (
	countedAt      = iota // the number of the interval on Postgres, the time in microseconds on SQLite
	countedCertain        // whether the events fit certainly
	countedEvents
)

func (p *subquery) countQuery(d bun.IDB, a *HistoryQuery, width time.Duration) string {
	q := p.selectEvents(d, a)
	certain := p.certain()
	if !p.postgres {
		return q.ColumnExpr("e.timestamp").ColumnExpr(certain.sql, certain.args...).ColumnExpr("1").String()
	}
	return q.ColumnExpr("e.timestamp / ?", width.Microseconds()).ColumnExpr(certain.sql, certain.args...).ColumnExpr("count(*)").
		GroupExpr("1, 2").String()
}

// DistinctIDs reads the distinct ids from the index.
func (s historyStore) DistinctIDs(ctx context.Context, a *HistoryQuery) (ids map[string]struct{}, ambiguous bool, err error) {
	ids = map[string]struct{}{}
	var queries []string
	for _, p := range s.splitQuery(a) {
		q := p.selectEvents(s.db.Read(ctx), a)
		if p.postgres {
			q = q.Distinct() // SQLite is slower with it
		}
		certain := p.certain()
		queries = append(queries, q.ColumnExpr("e.distinct_id").ColumnExpr(certain.sql, certain.args...).String())
	}
	err = s.db.Scan(ctx, queries, func(_ int, r *db.Row) error {
		id := r.Bytes(0)
		if r.Int(1) == 0 {
			ambiguous = true
		} else if _, known := ids[string(id)]; !known {
			ids[string(id)] = struct{}{}
		}
		return nil
	})
	return ids, ambiguous, err
}

// The columns of scan that every query reads.
const (
	columnRow = iota
	columnTime
	columnDistinctID
	optionalColumns // the first of the optional ones
)

// scanColumns are the numbers of the optional columns of a scan, -1 for those
// that it does not read.
type scanColumns struct {
	name, uuid, received, chain, url, properties, person, personUUID, personProperties int
}

// selectColumns adds the columns that the query needs.
func (p *subquery) selectColumns(q *bun.SelectQuery, a *HistoryQuery) (*bun.SelectQuery, scanColumns) {
	q = q.ColumnExpr("e.id, e.timestamp, e.distinct_id")
	n := optionalColumns
	add := func(wanted bool, column string) int {
		if !wanted {
			return -1
		}
		q = q.ColumnExpr(column)
		n++
		return n - 1
	}
	c := scanColumns{
		name:             add(p.anyEvent, "e.event"),
		uuid:             add(a.Without&IdentityColumns == 0, "e.uuid"),
		received:         add(a.Without&IdentityColumns == 0, "e.received_at"),
		chain:            add(a.Without&ElementsColumn == 0, "e.elements_chain"),
		url:              add(a.Without&PropertiesColumn == 0 && !p.postgres, "e.current_url"),
		properties:       add(a.Without&PropertiesColumn == 0, "e.properties"),
		person:           add(a.WithPersons, "p.id"),
		personUUID:       add(a.WithPersons, "CAST(p.uuid AS TEXT)"),
		personProperties: add(a.WithPersons, "p.properties"),
	}
	if a.WithPersons {
		q = q.Join(joinPersons)
	}
	return q, c
}

func (s historyStore) ScanHistory(ctx context.Context, a *HistoryQuery, fn func(*HistoryEvent) error) error {
	var queries []string
	var readers []*rowReader
	for _, p := range s.splitQuery(a) {
		q, columns := p.selectColumns(p.selectEvents(s.db.Read(ctx), a), a)
		queries = append(queries, q.String())
		r := &rowReader{columns: columns, names: map[string]string{}, decoder: s.dictionaries.NewDecoder()}
		r.out.Event.ProjectID, r.out.Event.Name = a.ProjectID, p.event
		readers = append(readers, r)
	}
	return s.db.Scan(ctx, queries, func(query int, row *db.Row) error {
		e, err := readers[query].read(ctx, row)
		if err != nil {
			return err
		}
		return fn(e)
	})
}

// rowReader converts the rows of one query. It returns the same event each time.
type rowReader struct {
	columns scanColumns
	names   map[string]string // of events
	decoder *dictionaries.Decoder
	out     HistoryEvent
}

func (r *rowReader) read(ctx context.Context, row *db.Row) (*HistoryEvent, error) {
	ev, c := &r.out.Event, &r.columns
	r.out.Row, ev.DistinctID = row.Int(columnRow), string(row.Bytes(columnDistinctID))
	ev.Timestamp = time.UnixMicro(row.Int(columnTime)).UTC()
	if c.name >= 0 {
		ev.Name = r.name(row.Bytes(c.name))
	}
	if c.uuid >= 0 {
		id, err := uuid.FromBytes(row.Bytes(c.uuid))
		if err != nil {
			return nil, fmt.Errorf("event of row %d: %w", r.out.Row, err)
		}
		ev.UUID, ev.ReceivedAt = id.String(), time.UnixMicro(row.Int(c.received)).UTC()
	}
	if c.chain >= 0 {
		ev.ElementsChain = string(row.Bytes(c.chain))
	}
	if c.properties >= 0 {
		var err error
		if ev.Properties, err = r.properties(ctx, row); err != nil {
			return nil, fmt.Errorf("properties of the event of row %d: %w", r.out.Row, err)
		}
	}
	if c.person >= 0 {
		r.out.PersonRow, ev.PersonID = row.Int(c.person), string(row.Bytes(c.personUUID))
		r.out.PersonProperties = row.Bytes(c.personProperties)
	}
	return &r.out, nil
}

func (r *rowReader) properties(ctx context.Context, row *db.Row) ([]byte, error) {
	stored := row.Bytes(r.columns.properties)
	if !rowcodec.IsCompressed(stored) {
		return stored, nil
	}
	return r.decoder.Decode(ctx, stored, row.Bytes(columnDistinctID), row.Bytes(r.columns.url))
}

// name returns the text of a name, which few events have for themselves.
func (r *rowReader) name(raw []byte) string {
	name, ok := r.names[string(raw)]
	if !ok {
		if len(r.names) == maxScanNames {
			clear(r.names)
		}
		name = string(raw)
		r.names[name] = name
	}
	return name
}

const maxScanNames = 1000

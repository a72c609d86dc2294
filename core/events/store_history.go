package events

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// historyStore answers history queries. Each query is split into subqueries; see
// splitQuery.
type historyStore struct{ db *db.DB }

// inSnapshot runs fn in a read transaction with one consistent view.
func (s historyStore) inSnapshot(ctx context.Context, fn func(tx bun.IDB) error) error {
	opts := &sql.TxOptions{ReadOnly: true}
	if s.db.Postgres() {
		opts.Isolation = sql.LevelRepeatableRead
	}
	tx, err := s.db.Read(ctx).BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // a read transaction commits nothing
	return fn(tx)
}

// first returns the smallest timestamp of a project in microseconds, ok false
// without events. The index of timestamps answers it.
func (s historyStore) first(ctx context.Context, projectID int64) (micros int64, ok bool, err error) {
	var at sql.NullInt64
	err = s.db.Read(ctx).NewSelect().TableExpr("events").ColumnExpr("min(timestamp)").Where("project_id = ?", projectID).Scan(ctx, &at)
	return at.Int64, at.Valid, err
}

func (s historyStore) count(ctx context.Context, a *HistoryQuery, width time.Duration) (HistoryCounts, error) {
	t := HistoryCounts{Events: map[int64]int64{}}
	err := s.inSnapshot(ctx, func(tx bun.IDB) error {
		if err := tx.NewSelect().TableExpr("events").ColumnExpr("coalesce(max(id), 0)").Scan(ctx, &t.Row); err != nil {
			return err
		}
		for _, p := range s.splitQuery(a) {
			if err := s.addCounts(ctx, tx, a, &p, width, &t); err != nil {
				return err
			}
		}
		return nil
	})
	return t, err
}

func (s historyStore) addCounts(ctx context.Context, tx bun.IDB, a *HistoryQuery, p *subquery, width time.Duration, t *HistoryCounts) error {
	var rows []struct {
		Interval int64 `bun:"interval"`
		Certain  bool  `bun:"certain"`
		Events   int64 `bun:"events"`
	}
	condition := p.matchCondition()
	err := p.selectEvents(tx, a).ColumnExpr("e.timestamp / ? AS interval", width.Microseconds()).
		ColumnExpr("coalesce("+condition.sql+", FALSE) AS certain", condition.args...).ColumnExpr("count(*) AS events").
		GroupExpr("1, 2").Scan(ctx, &rows)
	for _, r := range rows {
		if r.Certain {
			t.Events[r.Interval] += r.Events
		} else {
			t.Ambiguous += r.Events
		}
	}
	return err
}

func (s historyStore) personIDs(ctx context.Context, a *HistoryQuery) (ids []int64, ambiguous bool, err error) {
	err = s.inSnapshot(ctx, func(tx bun.IDB) error {
		for _, p := range s.splitQuery(a) {
			var rows []struct {
				Person  sql.NullInt64 `bun:"person"`
				Certain bool          `bun:"certain"`
			}
			condition := p.matchCondition()
			err := p.selectEvents(tx, a).Distinct().ColumnExpr("d.person_id AS person").
				ColumnExpr("coalesce("+condition.sql+", FALSE) AS certain", condition.args...).
				Join("LEFT JOIN person_distinct_ids AS d ON d.project_id = e.project_id AND d.distinct_id = e.distinct_id").
				Scan(ctx, &rows)
			if err != nil {
				return err
			}
			for _, r := range rows {
				switch {
				case !r.Certain:
					ambiguous = true
				case r.Person.Valid:
					ids = append(ids, r.Person.Int64)
				}
			}
		}
		return nil
	})
	return ids, ambiguous, err
}

const historyColumns = `e.id, e.uuid, e.event, e.distinct_id, e.timestamp, e.received_at, coalesce(e.elements_chain, ''),
	e.properties, `

const (
	noPersonColumns = "0, '', NULL"
	personColumns   = "coalesce(p.id, 0), coalesce(p.uuid, ''), p.properties"
)

func (s historyStore) scan(ctx context.Context, a *HistoryQuery, fn func(*HistoryEvent) error) error {
	for _, p := range s.splitQuery(a) {
		if err := s.scanSubquery(ctx, a, &p, fn); err != nil {
			return err
		}
	}
	return nil
}

func (s historyStore) scanSubquery(ctx context.Context, a *HistoryQuery, p *subquery, fn func(*HistoryEvent) error) error {
	q := p.selectEvents(s.db.Read(ctx), a)
	if a.WithPersons {
		q = q.ColumnExpr(historyColumns + personColumns).Join(joinPersons)
	} else {
		q = q.ColumnExpr(historyColumns + noPersonColumns)
	}
	rows, err := q.Rows(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var row HistoryEvent
	var id uuid.UUID
	var at, received int64
	var chain, properties, person sql.RawBytes
	ev := &row.Event
	ev.ProjectID = a.ProjectID
	for rows.Next() {
		err := rows.Scan(&row.Row, &id, &ev.Name, &ev.DistinctID, &at, &received, &chain, &properties,
			&row.PersonRow, &ev.PersonID, &person)
		if err != nil {
			return err
		}
		ev.UUID, ev.ElementsChain = id.String(), string(chain)
		ev.Timestamp, ev.ReceivedAt = time.UnixMicro(at).UTC(), time.UnixMicro(received).UTC()
		ev.Properties, row.PersonProperties = json.RawMessage(properties), person
		if err := fn(&row); err != nil {
			return err
		}
	}
	return rows.Err()
}

package events

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"
)

// inSnapshot runs fn so that all it reads is of one moment.
func (s *Service) inSnapshot(ctx context.Context, fn func(tx bun.IDB) error) error {
	opts := &sql.TxOptions{ReadOnly: true}
	if s.db.Postgres() {
		opts.Isolation = sql.LevelRepeatableRead
	}
	tx, err := s.db.Read(ctx).BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to commit
	return fn(tx)
}

func (s *Service) countHistory(ctx context.Context, a *HistoryQuery, width time.Duration) (HistoryCounts, error) {
	t := HistoryCounts{Events: map[int64]int64{}}
	err := s.inSnapshot(ctx, func(tx bun.IDB) error {
		if err := tx.NewRaw("SELECT coalesce(max(id), 0) FROM events").Scan(ctx, &t.Row); err != nil {
			return err
		}
		for _, p := range s.splitQuery(a) {
			if err := s.countSubquery(ctx, tx, a, &p, width, &t); err != nil {
				return err
			}
		}
		return nil
	})
	return t, err
}

func (s *Service) countSubquery(ctx context.Context, tx bun.IDB, a *HistoryQuery, p *subquery, width time.Duration, t *HistoryCounts) error {
	var rows []struct {
		Interval int64 `bun:"interval"`
		Sure     bool  `bun:"sure"`
		Events   int64 `bun:"events"`
	}
	fits := p.matchCondition()
	err := p.selectEvents(tx, a).ColumnExpr("e.timestamp / ? AS interval", width.Microseconds()).
		ColumnExpr("coalesce("+fits.sql+", FALSE) AS sure", fits.args...).ColumnExpr("count(*) AS events").
		GroupExpr("1, 2").Scan(ctx, &rows)
	for _, r := range rows {
		if r.Sure {
			t.Events[r.Interval] += r.Events
		} else {
			t.Ambiguous += r.Events
		}
	}
	return err
}

func (s *Service) findPersonIDs(ctx context.Context, a *HistoryQuery) (ids []int64, open bool, err error) {
	err = s.inSnapshot(ctx, func(tx bun.IDB) error {
		for _, p := range s.splitQuery(a) {
			var rows []struct {
				Person sql.NullInt64 `bun:"person"`
				Sure   bool          `bun:"sure"`
			}
			fits := p.matchCondition()
			err := p.selectEvents(tx, a).Distinct().ColumnExpr("d.person_id AS person").
				ColumnExpr("coalesce("+fits.sql+", FALSE) AS sure", fits.args...).
				Join("LEFT JOIN person_distinct_ids AS d ON d.project_id = e.project_id AND d.distinct_id = e.distinct_id").
				Scan(ctx, &rows)
			if err != nil {
				return err
			}
			for _, r := range rows {
				switch {
				case !r.Sure:
					open = true
				case r.Person.Valid:
					ids = append(ids, r.Person.Int64)
				}
			}
		}
		return nil
	})
	return ids, open, err
}

const historyColumns = `e.id, e.uuid, e.event, e.distinct_id, e.timestamp, e.received_at, coalesce(e.elements_chain, ''),
	e.properties, `

const (
	noPersonColumns = "0, '', NULL"
	personColumns   = "coalesce(p.id, 0), coalesce(p.uuid, ''), p.properties"
)

func (s *Service) scanHistory(ctx context.Context, a *HistoryQuery, fn func(*HistoryEvent) error) error {
	for _, p := range s.splitQuery(a) {
		if err := s.scanSubquery(ctx, a, &p, fn); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) scanSubquery(ctx context.Context, a *HistoryQuery, p *subquery, fn func(*HistoryEvent) error) error {
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
	var one HistoryEvent
	var id uuid.UUID
	var at, received int64
	var chain, properties, person sql.RawBytes
	ev := &one.Event
	ev.ProjectID = a.ProjectID
	for rows.Next() {
		err := rows.Scan(&one.Row, &id, &ev.Name, &ev.DistinctID, &at, &received, &chain, &properties,
			&one.PersonRow, &ev.PersonID, &person)
		if err != nil {
			return err
		}
		ev.UUID, ev.ElementsChain = id.String(), string(chain)
		ev.Timestamp, ev.ReceivedAt = time.UnixMicro(at).UTC(), time.UnixMicro(received).UTC()
		ev.Properties, one.PersonProperties = json.RawMessage(properties), person
		if err := fn(&one); err != nil {
			return err
		}
	}
	return rows.Err()
}

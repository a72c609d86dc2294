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

func (s *Service) tally(ctx context.Context, a *Ask, width time.Duration) (Tally, error) {
	t := Tally{Events: map[int64]int64{}}
	err := s.inSnapshot(ctx, func(tx bun.IDB) error {
		if err := tx.NewRaw("SELECT coalesce(max(id), 0) FROM events").Scan(ctx, &t.Row); err != nil {
			return err
		}
		for _, p := range s.parts(a) {
			if err := s.tallyPart(ctx, tx, a, &p, width, &t); err != nil {
				return err
			}
		}
		return nil
	})
	return t, err
}

func (s *Service) tallyPart(ctx context.Context, tx bun.IDB, a *Ask, p *part, width time.Duration, t *Tally) error {
	var rows []struct {
		Interval int64 `bun:"interval"`
		Sure     bool  `bun:"sure"`
		Events   int64 `bun:"events"`
	}
	fits := p.fits()
	err := p.from(tx, a).ColumnExpr("e.timestamp / ? AS interval", width.Microseconds()).
		ColumnExpr("coalesce("+fits.sql+", FALSE) AS sure", fits.args...).ColumnExpr("count(*) AS events").
		GroupExpr("1, 2").Scan(ctx, &rows)
	for _, r := range rows {
		if r.Sure {
			t.Events[r.Interval] += r.Events
		} else {
			t.Open += r.Events
		}
	}
	return err
}

func (s *Service) actors(ctx context.Context, a *Ask) (ids []int64, open bool, err error) {
	err = s.inSnapshot(ctx, func(tx bun.IDB) error {
		for _, p := range s.parts(a) {
			var rows []struct {
				Person sql.NullInt64 `bun:"person"`
				Sure   bool          `bun:"sure"`
			}
			fits := p.fits()
			err := p.from(tx, a).Distinct().ColumnExpr("d.person_id AS person").
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

const pastColumns = `e.id, e.uuid, e.event, e.distinct_id, e.timestamp, e.received_at, coalesce(e.elements_chain, ''),
	e.properties, `

const (
	nobodyColumns = "0, '', NULL"
	ownerColumns  = "coalesce(p.id, 0), coalesce(p.uuid, ''), p.properties"
)

func (s *Service) scan(ctx context.Context, a *Ask, fn func(*Past) error) error {
	for _, p := range s.parts(a) {
		if err := s.scanPart(ctx, a, &p, fn); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) scanPart(ctx context.Context, a *Ask, p *part, fn func(*Past) error) error {
	q := p.from(s.db.Read(ctx), a)
	if a.People {
		q = q.ColumnExpr(pastColumns + ownerColumns).Join(owners)
	} else {
		q = q.ColumnExpr(pastColumns + nobodyColumns)
	}
	rows, err := q.Rows(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var one Past
	var id uuid.UUID
	var at, received int64
	var chain, properties, person sql.RawBytes
	ev := &one.Event
	ev.ProjectID = a.ProjectID
	for rows.Next() {
		err := rows.Scan(&one.Row, &id, &ev.Name, &ev.DistinctID, &at, &received, &chain, &properties,
			&one.Person, &ev.PersonID, &person)
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

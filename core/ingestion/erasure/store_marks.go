package erasure

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"
)

// idRow is a row of erased_ids.
type idRow struct {
	bun.BaseModel `bun:"table:erased_ids,alias:i"`

	ProjectID int64  `bun:",pk"`
	IDHash    []byte `bun:"id_hash,pk"`
	Journal   string `bun:",pk"`
	PersonSeq int64
	PersonAt  int64
	EventsSeq int64
	EventsAt  int64
}

// extend makes the row that of two erasures of its distinct id.
func (r *idRow) extend(by *idRow) {
	r.PersonSeq, r.PersonAt = max(r.PersonSeq, by.PersonSeq), max(r.PersonAt, by.PersonAt)
	r.EventsSeq, r.EventsAt = max(r.EventsSeq, by.EventsSeq), max(r.EventsAt, by.EventsAt)
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

func (r *idRow) mark() mark {
	return mark{
		personSeq: uint64(r.PersonSeq), eventsSeq: uint64(r.EventsSeq), personAt: timeOf(r.PersonAt), eventsAt: timeOf(r.EventsAt),
	}
}

// mark writes the marks of an erasure for one place, and leaves its row as it is.
func (s *store) mark(ctx context.Context, key []byte, e *Erasure, p place) error {
	return s.db.Tx(ctx, func(ctx context.Context) error { return s.addMarks(ctx, key, []*Erasure{e}, []place{p}) })
}

// marksPerStatement bounds the rows of an insertion: SQLite takes 32,766 values.
const marksPerStatement = 1000

// addMarks writes marks for each distinct id of erasures and each place; the later erasure
// wins.
func (s *store) addMarks(ctx context.Context, key []byte, list []*Erasure, places []place) error {
	for rows := range slices.Chunk(marksOf(key, list, places), marksPerStatement) {
		q := s.db.Write(ctx).NewInsert().Model(&rows).On("CONFLICT (project_id, id_hash, journal) DO UPDATE")
		for _, column := range []bun.Ident{"person_seq", "person_at", "events_seq", "events_at"} {
			q = q.Set("? = CASE WHEN EXCLUDED.? > i.? THEN EXCLUDED.? ELSE i.? END", column, column, column, column, column)
		}
		if _, err := q.Returning("NULL").Exec(ctx); err != nil {
			return fmt.Errorf("record erased ids: %w", err)
		}
	}
	return nil
}

// marksOf returns the rows of erasures, each key once, in the order of their keys: two
// transactions that write the same rows do not wait for each other.
func marksOf(key []byte, list []*Erasure, places []place) []*idRow {
	type rowKey struct {
		project int64
		hash    idHash
		journal string
	}
	byKey := map[rowKey]*idRow{}
	for _, e := range list {
		for _, id := range e.DistinctIDs {
			h := hashID(key, e.ProjectID, id)
			for _, p := range places {
				row, k := rowOf(e, h, p), rowKey{e.ProjectID, h, p.journal}
				if have := byKey[k]; have != nil {
					row.extend(have)
				}
				byKey[k] = row
			}
		}
	}
	return slices.SortedFunc(maps.Values(byKey), func(a, b *idRow) int {
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), bytes.Compare(a.IDHash, b.IDHash), cmp.Compare(a.Journal, b.Journal))
	})
}

// rowOf returns the mark of a distinct id at a place.
func rowOf(e *Erasure, h idHash, p place) *idRow {
	at := *e
	at.Seq = p.seq
	k := mark{}.add(&at)
	return &idRow{
		ProjectID: e.ProjectID, IDHash: h[:], Journal: p.journal,
		PersonSeq: int64(k.personSeq), PersonAt: micros(k.personAt), EventsSeq: int64(k.eventsSeq), EventsAt: micros(k.eventsAt),
	}
}

// marks calls fn for each erased id of a journal whose record is not before seq.
func (s *store) marks(ctx context.Context, journal string, seq uint64, fn func(projectID int64, h idHash, m mark)) error {
	var rows []idRow
	err := s.db.Read(ctx).NewSelect().Model(&rows).Where("journal = ? AND person_seq >= ?", journal, int64(seq)).Scan(ctx)
	if err != nil {
		return fmt.Errorf("read erased ids: %w", err)
	}
	for i := range rows {
		fn(rows[i].ProjectID, idHash(rows[i].IDHash), rows[i].mark())
	}
	return nil
}

// markOf returns the latest erasures of a distinct id in any journal.
func (s *store) markOf(ctx context.Context, projectID int64, h idHash) (mark, error) {
	var r idRow
	err := s.db.Read(ctx).NewSelect().Model((*idRow)(nil)).ColumnExpr("coalesce(max(person_at), 0) AS person_at").
		ColumnExpr("coalesce(max(events_at), 0) AS events_at").Where("project_id = ? AND id_hash = ?", projectID, h[:]).
		Scan(ctx, &r.PersonAt, &r.EventsAt)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return mark{}, fmt.Errorf("look for an erased id: %w", err)
	}
	return r.mark(), nil
}

// isMarked reports whether each distinct id of an erasure has a mark in a journal that is
// not of an earlier request.
func (s *store) isMarked(ctx context.Context, key []byte, e *Erasure, journal string) (bool, error) {
	for rows := range slices.Chunk(marksOf(key, []*Erasure{e}, []place{{journal, e.Seq}}), marksPerStatement) {
		hashes := make([][]byte, len(rows))
		for i, r := range rows {
			hashes[i] = r.IDHash
		}
		q := s.db.Read(ctx).NewSelect().Model((*idRow)(nil)).Where("project_id = ? AND journal = ? AND id_hash IN (?)", e.ProjectID, journal, bun.List(hashes)).
			Where("person_at >= ?", micros(e.RequestedAt))
		if e.Events {
			q = q.Where("events_at >= ?", micros(e.RequestedAt))
		}
		n, err := q.Count(ctx)
		if err != nil {
			return false, fmt.Errorf("look for the marks of an erasure: %w", err)
		}
		if n < int64(len(rows)) {
			return false, nil
		}
	}
	return true, nil
}

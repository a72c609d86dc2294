package erasure

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/persons"
)

// store keeps erasures. Its methods join the transaction of their context.
type store struct{ db *db.DB }

// erasureRow is a row of erasures.
type erasureRow struct {
	bun.BaseModel `bun:"table:erasures,alias:e"`

	ID          string `bun:",pk"`
	ProjectID   int64
	PersonID    int64
	DistinctIDs string `bun:"distinct_ids"`
	Events      bool
	RequestedAt db.Time
	Journal     string
	Seq         int64
	DoneAt      db.Time `bun:",nullzero"`
}

// key returns the key of the hashes. The migration has created it.
func (s *store) key(ctx context.Context) ([]byte, error) {
	var key string
	if err := s.db.Read(ctx).NewSelect().Table("erasure_key").Column("key").Where("id = 1").Scan(ctx, &key); err != nil {
		return nil, fmt.Errorf("read the key of erasures: %w", err)
	}
	return []byte(key), nil
}

// insert writes a new erasure. An existing id is left unchanged.
func (s *store) insert(ctx context.Context, e *Erasure) error {
	ids, err := json.Marshal(e.DistinctIDs)
	if err != nil {
		return fmt.Errorf("encode distinct ids: %w", err)
	}
	row := &erasureRow{
		ID: e.ID, ProjectID: e.ProjectID, PersonID: e.PersonID, DistinctIDs: string(ids), Events: e.Events,
		RequestedAt: db.At(e.RequestedAt), Journal: e.Journal, Seq: int64(e.Seq),
	}
	if _, err := s.db.Write(ctx).NewInsert().Model(row).On("CONFLICT (id) DO NOTHING").Returning("NULL").Exec(ctx); err != nil {
		return fmt.Errorf("record erasure: %w", err)
	}
	return nil
}

// insertOrJoin writes a new erasure, or gives e the id of one of the same person that has
// not begun and concerns everything that e does. Such an erasure does not begin before
// the transaction of ctx has ended.
func (s *store) insertOrJoin(ctx context.Context, e *Erasure) error {
	var rows []erasureRow
	err := s.locked(ctx, &rows).Where("project_id = ? AND person_id = ?", e.ProjectID, e.PersonID).Where("done_at IS NULL AND journal = ''").Scan(ctx)
	if err != nil {
		return fmt.Errorf("look for erasures of the same person: %w", err)
	}
	for i := range rows {
		existing, err := rows[i].erasure()
		if err != nil {
			return err
		}
		missing := func(id string) bool { return !slices.Contains(existing.DistinctIDs, id) }
		if (existing.Events || !e.Events) && !slices.ContainsFunc(e.DistinctIDs, missing) {
			e.ID = existing.ID
			return s.setRequestedAt(ctx, e)
		}
	}
	return s.insert(ctx, e)
}

// setRequestedAt makes the time of an erasure that of e, which has its id, if it is later:
// dead letters that were received until then are erased.
func (s *store) setRequestedAt(ctx context.Context, e *Erasure) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*erasureRow)(nil)).Set("requested_at = ?", db.At(e.RequestedAt)).
		Where("id = ? AND requested_at < ?", e.ID, db.At(e.RequestedAt)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("record the time of an erasure: %w", err)
	}
	return nil
}

// markBegun records that the records of erasures are appended to a journal from now on,
// and reads their times again. It returns those that are not done: a node that was stopped
// may have read the list before another one carried them out.
func (s *store) markBegun(ctx context.Context, journal string, list []*Erasure) (begun []*Erasure, err error) {
	byID := make(map[string]*Erasure, len(list))
	for _, e := range list {
		byID[e.ID] = e
	}
	ids := bun.List(slices.Collect(maps.Keys(byID)))
	var rows []erasureRow
	err = s.db.Tx(ctx, func(ctx context.Context) error {
		if err := cluster.Fence(ctx); err != nil {
			return err
		}
		if err := s.locked(ctx, &rows).Column("id", "requested_at").Where("id IN (?) AND done_at IS NULL", ids).Scan(ctx); err != nil {
			return err
		}
		_, err := s.db.Write(ctx).NewUpdate().Model((*erasureRow)(nil)).Set("journal = ?", journal).Where("id IN (?) AND journal = ''", ids).Exec(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("record the begin of erasures: %w", err)
	}
	for i := range rows {
		e := byID[rows[i].ID]
		e.RequestedAt = rows[i].RequestedAt.Time
		begun = append(begun, e)
	}
	return begun, nil
}

// clearBegun records that erasures have not begun, because their records were not appended.
// Repeated requests join them again.
func (s *store) clearBegun(ctx context.Context, list []*Erasure) error {
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	err := s.db.Tx(ctx, func(ctx context.Context) error {
		if err := cluster.Fence(ctx); err != nil {
			return err
		}
		_, err := s.db.Write(ctx).NewUpdate().Model((*erasureRow)(nil)).Set("journal = ''").Where("id IN (?) AND seq = 0 AND done_at IS NULL", bun.List(ids)).Exec(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("record that erasures have not begun: %w", err)
	}
	return nil
}

// locked selects rows, which stay locked until the transaction of ctx ends. Their order is
// that of all transactions, so that two of them do not wait for each other.
func (s *store) locked(ctx context.Context, rows *[]erasureRow) *bun.SelectQuery {
	q := s.db.Write(ctx).NewSelect().Model(rows).Order("id")
	if s.db.Postgres() {
		q = q.For("UPDATE")
	}
	return q
}

// isDone reports whether the erasure was carried out.
func (s *store) isDone(ctx context.Context, id string) (bool, error) {
	return s.has(ctx, id, "done_at IS NOT NULL")
}

// doneOf returns those of the erasures that were carried out.
func (s *store) doneOf(ctx context.Context, ids []string) (done []string, err error) {
	for some := range slices.Chunk(ids, 1000) {
		var found []string
		err := s.db.Read(ctx).NewSelect().Model((*erasureRow)(nil)).Column("id").Where("id IN (?) AND done_at IS NOT NULL", bun.List(some)).Scan(ctx, &found)
		if err != nil {
			return done, fmt.Errorf("look for erasures that are done: %w", err)
		}
		done = append(done, found...)
	}
	return done, nil
}

// isRequested reports whether the erasure was requested from this database: one that is
// recovered from a log has no person.
func (s *store) isRequested(ctx context.Context, id string) (bool, error) {
	return s.has(ctx, id, "person_id <> 0")
}

// isSettled reports whether the erasure was carried out, or was requested from this
// database.
func (s *store) isSettled(ctx context.Context, id string) (bool, error) {
	return s.has(ctx, id, "(done_at IS NOT NULL OR person_id <> 0)")
}

// has reports whether there is an erasure with the id for which a condition holds.
func (s *store) has(ctx context.Context, id, condition string) (bool, error) {
	n, err := s.db.Read(ctx).NewSelect().Model((*erasureRow)(nil)).Where("id = ?", id).Where(condition).Count(ctx)
	if err != nil {
		return false, fmt.Errorf("look for erasure %s: %w", id, err)
	}
	return n > 0, nil
}

// openErasures returns a page of the erasures that are not done, the oldest first, and where
// the next page begins. The first one begins at the zero value.
func (s *store) openErasures(ctx context.Context, after openKey, limit int) (page []Erasure, next openKey, err error) {
	var rows []erasureRow
	err = s.db.Read(ctx).NewSelect().Model(&rows).Where("done_at IS NULL AND (requested_at, id) > (?, ?)", after.requestedAt, after.id).
		Order("requested_at", "id").Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, after, fmt.Errorf("read open erasures: %w", err)
	}
	page = make([]Erasure, len(rows))
	for i := range rows {
		if page[i], err = rows[i].erasure(); err != nil {
			return nil, after, err
		}
		after = openKey{rows[i].RequestedAt, rows[i].ID}
	}
	return page, after, nil
}

// openKey is the place of an erasure among those that are not done.
type openKey struct {
	requestedAt db.Time
	id          string
}

func (r *erasureRow) erasure() (Erasure, error) {
	var ids []string
	if err := json.Unmarshal([]byte(r.DistinctIDs), &ids); err != nil {
		return Erasure{}, fmt.Errorf("read erasure %s: %w", r.ID, err)
	}
	return Erasure{
		Removal: persons.Removal{ProjectID: r.ProjectID, PersonID: r.PersonID, DistinctIDs: ids, Events: r.Events},
		ID:      r.ID, RequestedAt: r.RequestedAt.Time, Journal: r.Journal, Seq: uint64(r.Seq),
	}, nil
}

// remember writes the numbers of the journal records of erasures and the hashes, with a mark
// for each place. A done erasure stays without distinct ids. With wait, transactions that
// hold the lock have ended when it returns.
func (s *store) remember(ctx context.Context, key []byte, list []*Erasure, places []place, wait bool) error {
	return s.db.Tx(ctx, func(ctx context.Context) error {
		if err := cluster.Fence(ctx); err != nil {
			return err
		}
		if wait {
			if err := s.lock(ctx, true); err != nil {
				return err
			}
		}
		for _, e := range list {
			if err := s.setRecord(ctx, e); err != nil {
				return err
			}
		}
		return s.addMarks(ctx, key, list, places)
	})
}

// setRecord writes the number of the record of an erasure that is not done, and its
// distinct ids.
func (s *store) setRecord(ctx context.Context, e *Erasure) error {
	ids, err := json.Marshal(e.DistinctIDs)
	if err != nil {
		return fmt.Errorf("encode distinct ids: %w", err)
	}
	_, err = s.db.Write(ctx).NewUpdate().Model((*erasureRow)(nil)).Set("journal = ?", e.Journal).Set("seq = ?", int64(e.Seq)).
		Set("distinct_ids = ?", string(ids)).Where("id = ? AND done_at IS NULL", e.ID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("record erasure: %w", err)
	}
	return nil
}

// erasureLock is the advisory lock of transactions that process events, shared, and of
// those that write marks.
const erasureLock = 0x677569646f6e0002

// lock takes the lock until the end of the transaction in ctx. It does nothing outside
// of one, and on SQLite, where transactions that write run one after the other.
func (s *store) lock(ctx context.Context, exclusive bool) error {
	tx := s.db.SQLTx(ctx)
	if tx == nil || !s.db.Postgres() {
		return nil
	}
	// The session of a process that stops in the transaction ends: an erasure, and what
	// comes behind it, waits for the lock.
	query := `SELECT set_config('idle_in_transaction_session_timeout', '10s', true), pg_advisory_xact_lock_shared($1)`
	if exclusive {
		query = `SELECT set_config('idle_in_transaction_session_timeout', '10s', true), pg_advisory_xact_lock($1)`
	}
	if _, err := tx.ExecContext(ctx, query, int64(erasureLock)); err != nil {
		return fmt.Errorf("lock erasures: %w", err)
	}
	return nil
}

// finish marks the erasure as done and forgets its distinct ids.
func (s *store) finish(ctx context.Context, e *Erasure) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*erasureRow)(nil)).Set("done_at = ?", db.Now()).Set("distinct_ids = '[]'").
		Where("id = ?", e.ID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("finish erasure: %w", err)
	}
	return nil
}

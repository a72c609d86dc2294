package deadletter

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/sdk"
)

// Store is the SQL of dead letters. Its methods work in the transaction of their
// context when there is one.
type Store struct{ db *db.DB }

// NewStore returns the dead letters of a database.
func NewStore(d *db.DB) *Store { return &Store{d} }

// row is a row of dead_letters.
type row struct {
	bun.BaseModel `bun:"table:dead_letters,alias:d"`

	ID         int64 `bun:",pk,autoincrement"`
	ProjectID  int64
	Source     string
	EventUUID  string `bun:"event_uuid"`
	Event      string
	DistinctID string
	ReceivedAt db.Time
	CreatedAt  db.Time
	FailedAt   db.Time
	Attempts   int64
	Class      string
	Code       string
	Message    string
	Seq        int64
	Payload    string

	ReplayRequestedAt db.Time `bun:",nullzero"`
	ReplayWaiting     bool
	ReplayError       string
}

func rowOf(e *Entry) *row {
	return &row{
		ProjectID: e.ProjectID, Source: e.Source, EventUUID: e.EventUUID, Event: e.Event, DistinctID: e.DistinctID,
		ReceivedAt: db.At(e.ReceivedAt), CreatedAt: db.At(e.CreatedAt), FailedAt: db.At(e.FailedAt), Attempts: e.Attempts,
		Class: e.Class, Code: e.Code, Message: e.Message, Seq: int64(e.Seq), Payload: string(e.Payload),
	}
}

func (r *row) entry() Entry {
	return Entry{
		ID: r.ID, ProjectID: r.ProjectID, Source: r.Source, EventUUID: r.EventUUID, Event: r.Event, DistinctID: r.DistinctID,
		ReceivedAt: r.ReceivedAt.Time, CreatedAt: r.CreatedAt.Time, FailedAt: r.FailedAt.Time, Attempts: r.Attempts,
		Class: r.Class, Code: r.Code, Message: r.Message, Seq: uint64(r.Seq), Payload: json.RawMessage(r.Payload),
		ReplayRequestedAt: r.ReplayRequestedAt.Ptr(), ReplayWaiting: r.ReplayWaiting, ReplayError: r.ReplayError,
	}
}

// Add keeps a dead letter. If the source and event have one already, Add counts
// the failure in it and replaces the error; its payload, which may have been
// edited, stays.
func (s *Store) Add(ctx context.Context, e *Entry) error {
	_, err := s.db.Write(ctx).NewInsert().Model(rowOf(e)).
		On("CONFLICT (source, project_id, event_uuid) DO UPDATE").
		Set("attempts = d.attempts + EXCLUDED.attempts").Set("failed_at = EXCLUDED.failed_at").Set("class = EXCLUDED.class").
		Set("code = EXCLUDED.code").Set("message = EXCLUDED.message").Set("seq = EXCLUDED.seq").
		Returning("NULL").Exec(ctx)
	if err != nil {
		return fmt.Errorf("keep dead letter %s: %w", e.EventUUID, err)
	}
	return nil
}

// CodeRefused is the code of the dead letter of an event that was processed, and that the
// event store refuses.
const CodeRefused = "event_store_refused"

// AddRefused keeps the dead letter of an event that the event store refuses. A replay
// processes the event again.
func (s *Store) AddRefused(ctx context.Context, ev *sdk.Event, reason string) error {
	return s.Add(ctx, New(SourceWorker, ev, &sdk.Error{Class: sdk.ClassPermanent, Code: CodeRefused, Message: reason}, time.Now()))
}

// OfEvent returns the dead letters of one event, at most 100.
func (s *Store) OfEvent(ctx context.Context, projectID int64, uuid string) ([]Entry, error) {
	list, _, err := s.list(ctx, projectID, Filter{EventUUID: uuid}, 100, 0)
	return list, err
}

// list returns a page of dead letters, newest first, and the number of all.
func (s *Store) list(ctx context.Context, projectID int64, f Filter, limit, offset int) ([]Entry, int, error) {
	var rows []row
	q := s.db.Read(ctx).NewSelect().Model(&rows).Apply(f.where(projectID))
	count, err := q.Count(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("count dead letters: %w", err)
	}
	if err := q.Order("id DESC").Limit(int64(limit)).Offset(int64(offset)).Scan(ctx); err != nil {
		return nil, 0, fmt.Errorf("list dead letters: %w", err)
	}
	out := make([]Entry, len(rows))
	for i := range rows {
		out[i] = rows[i].entry()
	}
	return out, int(count), nil
}

var errNotFound = fault.New(fault.NotFound, "not_found", "No such dead letter.")

// get returns one dead letter, or NotFound.
func (s *Store) get(ctx context.Context, projectID, id int64) (Entry, error) {
	var r row
	err := s.db.Read(ctx).NewSelect().Model(&r).Where("project_id = ?", projectID).Where("id = ?", id).Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Entry{}, errNotFound
	case err != nil:
		return Entry{}, fmt.Errorf("read dead letter %d: %w", id, err)
	}
	return r.entry(), nil
}

// edit writes the event of e, unless the stored payload differs from old.
func (s *Store) edit(ctx context.Context, e *Entry, old json.RawMessage) error {
	n, err := affected("edit a dead letter")(s.update(ctx).
		Set("event = ?", e.Event).Set("distinct_id = ?", e.DistinctID).Set("payload = ?", string(e.Payload)).
		Where("project_id = ?", e.ProjectID).Where("id = ?", e.ID).Where("payload = ?", string(old)).Exec(ctx))
	if err == nil && n == 0 {
		return fault.New(fault.Conflict, "changed_meanwhile", "The dead letter was changed or sent meanwhile. Read it again.")
	}
	return err
}

// delete deletes dead letters of a project and returns their number.
func (s *Store) delete(ctx context.Context, projectID int64, ids ...int64) (int, error) {
	return affected("delete dead letters")(s.db.Write(ctx).NewDelete().Model((*row)(nil)).
		Where("project_id = ?", projectID).Where("id IN (?)", bun.List(ids)).Exec(ctx))
}

// expire deletes at most limit of the dead letters whose latest failure is
// before then, and returns their number. Those that wait for a replay stay.
func (s *Store) expire(ctx context.Context, then time.Time, limit int) (int, error) {
	expired := s.db.Write(ctx).NewSelect().Model((*row)(nil)).Column("id").
		Where("failed_at < ?", db.At(then)).Where("NOT replay_waiting").Order("failed_at").Limit(int64(limit))
	return affected("delete expired dead letters")(s.db.Write(ctx).NewDelete().Model((*row)(nil)).Where("id IN (?)", expired).Exec(ctx))
}

func (s *Store) update(ctx context.Context) *bun.UpdateQuery {
	return s.db.Write(ctx).NewUpdate().Model((*row)(nil))
}

// affected returns a function that reads the number of rows off a result and
// wraps an error in what.
func affected(what string) func(sql.Result, error) (int, error) {
	return func(res sql.Result, err error) (int, error) {
		if err != nil {
			return 0, fmt.Errorf("%s: %w", what, err)
		}
		n, err := res.RowsAffected()
		return int(n), err
	}
}

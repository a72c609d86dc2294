package cursors

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
)

type store struct{ db *db.DB }

// logRow is a row of event_logs.
type logRow struct {
	bun.BaseModel `bun:"table:event_logs"`

	Slot       int `bun:",pk"`
	ID         string
	Partitions int
}

// cursorRow is a row of log_cursors.
type cursorRow struct {
	bun.BaseModel `bun:"table:log_cursors,alias:c"`

	LogID     string `bun:",pk"`
	Partition int    `bun:"log_partition,pk"`
	Reader    string `bun:",pk"`
	Token     int64
	Seq       int64
	Index     int64 `bun:"event_index"`
	Count     int64 `bun:"event_count"`
}

func newRow(k Key, token int64, p journal.Position) *cursorRow {
	return &cursorRow{
		LogID: k.Log, Partition: k.Partition, Reader: k.Reader, Token: token,
		Seq: int64(p.Seq), Index: int64(p.Index), Count: int64(p.Count),
	}
}

func (r *cursorRow) position() journal.Position {
	return journal.Position{Seq: uint64(r.Seq), Index: uint32(r.Index), Count: uint64(r.Count)}
}

const (
	thisPartition = "log_id = ? AND log_partition = ?"
	thisCursor    = thisPartition + " AND reader = ?"
)

// noPlace are the codes of a database that does not tell its place: a missing right, a
// missing function and a feature that is not supported.
var noPlace = []string{"42501", "42883", "0A000"}

// place returns the place of the database, empty if it does not tell.
func (s store) place(ctx context.Context) (place string, err error) {
	err = s.db.Read(ctx).NewRaw(`SELECT to_hex(c.system_identifier) || '/' || d.oid FROM pg_control_system() AS c, pg_database AS d
		WHERE d.datname = current_database()`).Scan(ctx, &place)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && slices.Contains(noPlace, e.Code) {
		return "", nil
	}
	return place, err
}

// attached returns the log of this database. That is row if there was none, or if replace
// is set.
func (s store) attached(ctx context.Context, row logRow, replace bool) (found logRow, err error) {
	row.Slot = 1
	insert := s.db.Write(ctx).NewInsert().Model(&row).Returning("NULL")
	if replace {
		insert = insert.On("CONFLICT (slot) DO UPDATE").Set("id = EXCLUDED.id, partitions = EXCLUDED.partitions")
	} else {
		insert = insert.On("CONFLICT (slot) DO NOTHING")
	}
	if _, err := insert.Exec(ctx); err != nil {
		return found, err
	}
	err = s.db.Write(ctx).NewSelect().Model(&found).Where("slot = 1").Scan(ctx)
	return found, err
}

// log returns the log of this database.
func (s store) log(ctx context.Context) (found logRow, err error) {
	err = s.db.Read(ctx).NewSelect().Model(&found).Where("slot = 1").Scan(ctx)
	return found, err
}

// raiseTokens gives the cursors of the partition the token, unless theirs is higher. It
// waits for transactions that changed them.
func (s store) raiseTokens(ctx context.Context, k Key, token int64) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*cursorRow)(nil)).Set("token = ?", token).
		Where(thisPartition, k.Log, k.Partition).Where("token < ?", token).Exec(ctx)
	return err
}

func (s store) highestToken(ctx context.Context, k Key) (token int64, err error) {
	err = s.db.Write(ctx).NewSelect().Model((*cursorRow)(nil)).ColumnExpr("coalesce(max(token), 0)").
		Where(thisPartition, k.Log, k.Partition).Scan(ctx, &token)
	return token, err
}

// insert creates the cursors that do not exist.
func (s store) insert(ctx context.Context, rows ...*cursorRow) error {
	_, err := s.db.Write(ctx).NewInsert().Model(&rows).On("CONFLICT (log_id, log_partition, reader) DO NOTHING").Returning("NULL").Exec(ctx)
	return err
}

func (s store) find(ctx context.Context, k Key) (row cursorRow, found bool, err error) {
	err = s.db.Write(ctx).NewSelect().Model(&row).Where(thisCursor, k.Log, k.Partition, k.Reader).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return row, false, nil
	}
	return row, err == nil, err
}

// move writes the position of row if the cursor has no higher token and no later
// position.
func (s store) move(ctx context.Context, row *cursorRow) (bool, error) {
	done, err := s.db.Write(ctx).NewUpdate().Model(row).Column("token", "seq", "event_index", "event_count").WherePK().
		Where("token <= ? AND event_count <= ? AND (seq < ? OR seq = ? AND event_index <= ?)", row.Token, row.Count, row.Seq, row.Seq, row.Index).Exec(ctx)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n == 1, err
}

func (s store) remove(ctx context.Context, k Key, token int64) error {
	_, err := s.db.Write(ctx).NewDelete().Model((*cursorRow)(nil)).Where(thisCursor, k.Log, k.Partition, k.Reader).Where("token <= ?", token).Exec(ctx)
	return err
}

func (s store) list(ctx context.Context, log string) (rows []cursorRow, err error) {
	err = s.db.Read(ctx).NewSelect().Model(&rows).Where("log_id = ?", log).OrderExpr("log_partition, reader").Scan(ctx)
	return rows, err
}

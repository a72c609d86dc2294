package chain

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// Row is a row of activity_log.
type Row struct {
	bun.BaseModel `bun:"table:activity_log,alias:a"`

	ID        string `bun:",pk"`
	ProjectID int64
	Scope     string
	ItemID    string
	Activity  string
	UserID    int64
	UserName  string
	UserEmail string
	Detail    string
	CreatedAt db.Time

	OrganizationID string
	KeyID          int64
	Client         string
	UserAgent      string
	RequestID      string

	Sequence int64 `bun:",nullzero"` // 0 for an entry that is not sealed
	Previous string
	Hash     string
	Salt     string
	Digest   string // of the salt and the detail at the time of the seal
}

// headRow is the only row of activity_chain.
type headRow struct {
	bun.BaseModel `bun:"table:activity_chain,alias:c"`

	ID          int64 `bun:",pk"`
	Sequence    int64
	Hash        string
	CutSequence int64
	CutHash     string
}

func (r *headRow) head() Head { return Head{r.Sequence, r.Hash} }

// Chain reads and extends the chain in a database. Its methods may be called
// concurrently, also by several processes.
type Chain struct{ db *db.DB }

// New returns the chain in d.
func New(d *db.DB) *Chain { return &Chain{d} }

// Head returns the newest sealed entry.
func (c *Chain) Head(ctx context.Context) (Head, error) {
	row, err := c.readHead(ctx, false)
	return row.head(), err
}

// readHead reads the head. In a transaction that locks it, no other process seals.
func (c *Chain) readHead(ctx context.Context, lock bool) (headRow, error) {
	row := headRow{ID: 1}
	sel := c.db.Read(ctx).NewSelect().Model(&row).WherePK()
	if lock && c.db.Postgres() {
		sel = sel.For("UPDATE") // the transaction of SQLite holds the lock of the file
	}
	if err := sel.Scan(ctx); err != nil {
		return row, fmt.Errorf("read head of the activity log: %w", err)
	}
	return row, nil
}

func (c *Chain) writeHead(ctx context.Context, row *headRow) error {
	if _, err := c.db.Write(ctx).NewUpdate().Model(row).WherePK().Exec(ctx); err != nil {
		return fmt.Errorf("write head of the activity log: %w", err)
	}
	return nil
}

// page is the number of entries of a transaction or of a read.
const page = 500

// Seal seals at most one page of unsealed entries, the oldest first. It returns how
// many, and whether there are more.
func (c *Chain) Seal(ctx context.Context) (n int, more bool, err error) {
	if some, err := c.hasUnsealed(ctx); err != nil || !some {
		return 0, false, err
	}
	err = c.db.Tx(ctx, func(ctx context.Context) error {
		head, err := c.readHead(ctx, true)
		if err != nil {
			return err
		}
		var rows []Row
		if rows, err = c.unsealed(ctx); err != nil {
			return err
		}
		for i := range rows {
			if err := c.seal(ctx, &head, &rows[i]); err != nil {
				return err
			}
		}
		n, more = len(rows), len(rows) == page
		return c.writeHead(ctx, &head)
	})
	return n, more, err
}

// SealAll seals every entry that is visible now.
func (c *Chain) SealAll(ctx context.Context) error {
	for {
		if _, more, err := c.Seal(ctx); err != nil || !more {
			return err
		}
	}
}

func (c *Chain) hasUnsealed(ctx context.Context) (bool, error) {
	some, err := c.db.Read(ctx).NewSelect().Model((*Row)(nil)).Column("id").Where("sequence IS NULL").Limit(1).Exists(ctx)
	if err != nil {
		return false, fmt.Errorf("read activity: %w", err)
	}
	return some, nil
}

// unsealed returns a page of unsealed entries, the oldest first.
func (c *Chain) unsealed(ctx context.Context) ([]Row, error) {
	var rows []Row
	err := c.db.Read(ctx).NewSelect().Model(&rows).Where("sequence IS NULL").Order("created_at", "id").Limit(page).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read activity: %w", err)
	}
	return rows, nil
}

// CountUnsealed returns the number of entries that are not sealed yet.
func (c *Chain) CountUnsealed(ctx context.Context) (int64, error) {
	n, err := c.db.Read(ctx).NewSelect().Model((*Row)(nil)).Where("sequence IS NULL").Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count activity: %w", err)
	}
	return n, nil
}

func (c *Chain) seal(ctx context.Context, head *headRow, r *Row) error {
	r.seal(head.head())
	_, err := c.db.Write(ctx).NewUpdate().Model(r).Column("sequence", "previous", "hash", "salt", "digest").WherePK().Exec(ctx)
	if err != nil {
		return fmt.Errorf("seal activity %s: %w", r.ID, err)
	}
	head.Sequence, head.Hash = r.Sequence, r.Hash
	return nil
}

// after returns a page of sealed entries with higher numbers.
func (c *Chain) after(ctx context.Context, sequence int64) ([]Row, error) {
	return c.atMost(ctx, sequence, page)
}

func (c *Chain) atMost(ctx context.Context, sequence int64, n int) ([]Row, error) {
	var rows []Row
	err := c.db.Read(ctx).NewSelect().Model(&rows).Where("sequence > ?", sequence).Order("sequence").Limit(int64(n)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read activity: %w", err)
	}
	return rows, nil
}

// Redact replaces the detail of an entry, in the transaction of ctx if it has one. A
// sealed entry keeps its hash, and another entry names the new digest.
func (c *Chain) Redact(ctx context.Context, id, detail string) error {
	return c.db.Tx(ctx, func(ctx context.Context) error {
		if _, err := c.readHead(ctx, true); err != nil { // no seal meanwhile
			return err
		}
		r := Row{ID: id}
		if err := c.db.Read(ctx).NewSelect().Model(&r).WherePK().Scan(ctx); err != nil {
			return fmt.Errorf("read activity %s: %w", id, err)
		}
		if r.Detail = detail; r.Sequence > 0 {
			r.Salt = newSalt()
			if err := c.note(ctx, redacted, id, map[string]any{"sequence": r.Sequence, "detail_sha256": digest(r.Salt, detail)}); err != nil {
				return err
			}
		}
		if _, err := c.db.Write(ctx).NewUpdate().Model(&r).Column("detail", "salt").WherePK().Exec(ctx); err != nil {
			return fmt.Errorf("redact activity %s: %w", id, err)
		}
		return nil
	})
}

// note adds an entry about the log itself.
func (c *Chain) note(ctx context.Context, activity, item string, payload map[string]any) error {
	r := &Row{
		ID: uuid.Must(uuid.NewV7()).String(), Scope: Scope, ItemID: item, Activity: activity, CreatedAt: db.At(time.Now()),
		Detail: detailOf(activity, item, payload),
	}
	if _, err := c.db.Write(ctx).NewInsert().Model(r).Exec(ctx); err != nil {
		return fmt.Errorf("log activity: %w", err)
	}
	return nil
}

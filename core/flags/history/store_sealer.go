package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/activity/chain"
)

// flagRow has the columns of feature_flags that hold payloads.
type flagRow struct {
	bun.BaseModel `bun:"table:feature_flags,alias:f"`

	ID                int64 `bun:"id,pk"`
	ProjectID         int64
	Filters           string
	EncryptedPayloads bool `bun:"has_encrypted_payloads"`
}

// changeRow has the columns of scheduled_changes that hold payloads.
type changeRow struct {
	bun.BaseModel `bun:"table:scheduled_changes,alias:c"`

	ID      int64 `bun:"id,pk"`
	Payload string
}

// entryRow has the columns of activity_log that hold payloads.
type entryRow struct {
	bun.BaseModel `bun:"table:activity_log,alias:a"`

	ID        string `bun:",pk"`
	Detail    string
	CreatedAt int64
}

// page is the number of rows of one transaction. A row has up to some 100 KB.
const page = 20

// flagsAfter returns a page of flags with a higher id, deleted ones too, without
// their filters.
func (s *Sealer) flagsAfter(ctx context.Context, id int64) ([]flagRow, error) {
	var rows []flagRow
	err := s.db.Read(ctx).NewSelect().Model(&rows).Column("id", "project_id", "has_encrypted_payloads").
		Where("id > ?", id).Order("id").Limit(1000).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list flags: %w", err)
	}
	return rows, nil
}

// reencryptFilters encrypts the payloads of the flag again. It repeats for filters
// that change meanwhile.
func (w *work) reencryptFilters(ctx context.Context) error {
	for {
		var row flagRow
		err := w.db.Read(ctx).NewSelect().Model(&row).Column("filters", "has_encrypted_payloads").Where("id = ?", w.flag).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read flag %d: %w", w.flag, err)
		}
		w.sealedOnly = !row.EncryptedPayloads
		filters, changed, err := w.filters(json.RawMessage(row.Filters))
		if err != nil || !changed {
			return err
		}
		res, err := w.db.Write(ctx).NewUpdate().Model((*flagRow)(nil)).Set("filters = ?", string(filters)).
			Where("id = ? AND filters = ?", w.flag, row.Filters).Exec(ctx)
		if err != nil {
			return fmt.Errorf("store flag %d: %w", w.flag, err)
		}
		if n, err := res.RowsAffected(); err == nil && n > 0 {
			w.changed++
			return nil
		}
	}
}

// versions rewrites a page of versions. It returns false after the last one.
func (w *work) versions(ctx context.Context, mark *Mark) (more bool, err error) {
	var rows []versionRow
	err = w.db.Read(ctx).NewSelect().Model(&rows).Column("version", "state").
		Where("flag_id = ? AND version > ?", w.flag, mark.version).Order("version").Limit(page).Scan(ctx)
	if err != nil {
		return false, fmt.Errorf("read versions of flag %d: %w", w.flag, err)
	}
	err = w.db.Tx(ctx, func(ctx context.Context) error {
		for _, r := range rows {
			state, changed, err := w.state(r.State)
			if err != nil {
				return err
			}
			if !changed {
				continue
			}
			w.changed++
			if _, err := w.db.Write(ctx).NewUpdate().Model((*versionRow)(nil)).Set("state = ?", state).
				Where("flag_id = ? AND version = ?", w.flag, r.Version).Exec(ctx); err != nil {
				return fmt.Errorf("store version %d of flag %d: %w", r.Version, w.flag, err)
			}
		}
		return nil
	})
	if err == nil && len(rows) > 0 {
		mark.version = rows[len(rows)-1].Version
	}
	return len(rows) == page, err
}

// scheduled rewrites a page of scheduled changes. It returns false after the last one.
func (w *work) scheduled(ctx context.Context, mark *Mark) (more bool, err error) {
	var rows []changeRow
	err = w.db.Read(ctx).NewSelect().Model(&rows).Column("id", "payload").
		Where("project_id = ? AND flag_id = ? AND id > ?", w.project, w.flag, mark.change).Order("id").Limit(page).Scan(ctx)
	if err != nil {
		return false, fmt.Errorf("read scheduled changes of flag %d: %w", w.flag, err)
	}
	err = w.db.Tx(ctx, func(ctx context.Context) error {
		for _, r := range rows {
			payload, changed, err := w.operation(r.Payload)
			if err != nil {
				return err
			}
			if !changed {
				continue
			}
			w.changed++
			if _, err := w.db.Write(ctx).NewUpdate().Model((*changeRow)(nil)).Set("payload = ?", payload).Where("id = ?", r.ID).Exec(ctx); err != nil {
				return fmt.Errorf("store scheduled change %d: %w", r.ID, err)
			}
		}
		return nil
	})
	if err == nil && len(rows) > 0 {
		mark.change = rows[len(rows)-1].ID
	}
	return len(rows) == page, err
}

// entries redacts the entries of the flag in the activity log.
func (w *work) entries(ctx context.Context, mark *Mark) error {
	at, id := mark.entryAt-overlap, ""
	for {
		var rows []entryRow
		err := w.db.Read(ctx).NewSelect().Model(&rows).Column("id", "detail", "created_at").
			Where("project_id = ? AND scope = ? AND item_id = ?", w.project, activity.Flag, activity.ItemID(w.flag)).
			Where("(created_at, id) > (?, ?)", at, id).Order("created_at", "id").Limit(page).Scan(ctx)
		if err != nil {
			return fmt.Errorf("read activity of flag %d: %w", w.flag, err)
		}
		if err := w.redactEntries(ctx, rows); err != nil {
			return err
		}
		if len(rows) > 0 {
			last := rows[len(rows)-1]
			at, id, mark.entryAt = last.CreatedAt, last.ID, last.CreatedAt
		}
		if len(rows) < page {
			return nil
		}
	}
}

func (w *work) redactEntries(ctx context.Context, rows []entryRow) error {
	return w.db.Tx(ctx, func(ctx context.Context) error {
		for _, r := range rows {
			detail, changed := redact(r.Detail)
			if !changed {
				continue
			}
			if err := chain.New(w.db).Redact(ctx, r.ID, detail); err != nil {
				return fmt.Errorf("redact activity of flag %d: %w", w.flag, err)
			}
		}
		return nil
	})
}

package revision

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// Kind is the kind of a definition.
type Kind string

// The kinds.
const (
	Flag   Kind = "feature_flag"
	Cohort Kind = "cohort"
)

// markRow is the revision that wrote a definition last.
type markRow struct {
	bun.BaseModel `bun:"table:definition_changes,alias:d"`

	ProjectID int64 `bun:",pk"`
	Kind      Kind  `bun:",pk"`
	ItemID    int64 `bun:",pk"`
	Stamp     int64
}

// Mark records that the current revision of a project writes a flag or a cohort. It
// belongs in the transaction of the write, after Change has advanced the revision:
// snapshots do not see a write without it before they read everything again.
func Mark(ctx context.Context, d *db.DB, projectID int64, kind Kind, itemID int64) error {
	row := &markRow{ProjectID: projectID, Kind: kind, ItemID: itemID}
	_, err := d.Write(ctx).NewInsert().Model(row).
		Value("stamp", "COALESCE((SELECT stamp FROM flag_stamps WHERE project_id = ?), 0)", projectID).
		On("CONFLICT (project_id, kind, item_id) DO UPDATE").Set("stamp = EXCLUDED.stamp").Exec(ctx)
	if err != nil {
		return fmt.Errorf("mark %s %d as changed: %w", kind, itemID, err)
	}
	return nil
}

// Changed is the definitions that were written, also those that are deleted now.
type Changed struct{ Flags, Cohorts []int64 }

// ChangedSince returns the definitions that were written at a revision or later.
// complete is false if there are more than limit: the list is of no use then.
func (s *Store) ChangedSince(ctx context.Context, projectID, revision int64, limit int) (out Changed, complete bool, err error) {
	var rows []markRow
	err = s.db.Read(ctx).NewSelect().Model(&rows).Column("kind", "item_id").
		Where("project_id = ?", projectID).Where("stamp >= ?", revision).Limit(int64(limit + 1)).Scan(ctx)
	if err != nil {
		return out, false, fmt.Errorf("read changed definitions of project %d: %w", projectID, err)
	}
	for _, r := range rows {
		if r.Kind == Cohort {
			out.Cohorts = append(out.Cohorts, r.ItemID)
		} else {
			out.Flags = append(out.Flags, r.ItemID)
		}
	}
	return out, len(rows) <= limit, nil
}

// InTransaction reports whether ctx has a transaction: what is read with it may
// never be committed.
func (s *Store) InTransaction(ctx context.Context) bool { return s.db.SQLTx(ctx) != nil }

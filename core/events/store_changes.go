package events

import (
	"context"

	"github.com/uptrace/bun"
)

// allProjects is the project of the row of event_changes that counts for every
// project.
const allProjects = 0

// changeRow is a row of event_changes: the number of erasures and of changes of
// persons of a project.
type changeRow struct {
	bun.BaseModel `bun:"table:event_changes,alias:c"`

	ProjectID int64 `bun:",pk"`
	Erased    int64
	People    int64
}

func (s store) Checkpoint(ctx context.Context, projectID int64) (cp Checkpoint, err error) {
	err = s.db.Read(ctx).NewSelect().Model((*changeRow)(nil)).
		ColumnExpr("(SELECT coalesce(max(id), 0) FROM events) AS last_row").
		ColumnExpr("coalesce(sum(erased), 0) AS erased").ColumnExpr("coalesce(sum(people), 0) AS people").
		Where("project_id IN (?, ?)", projectID, allProjects).Scan(ctx, &cp.Row, &cp.Erased, &cp.Persons)
	return cp, err
}

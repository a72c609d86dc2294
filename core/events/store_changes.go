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

func (s store) readCheckpoint(ctx context.Context, projectID int64) (cp Checkpoint, err error) {
	err = s.db.Read(ctx).NewSelect().Model((*changeRow)(nil)).
		ColumnExpr("(SELECT coalesce(max(id), 0) FROM events) AS last_row").
		ColumnExpr("coalesce(sum(erased), 0) AS erased").ColumnExpr("coalesce(sum(people), 0) AS people").
		Where("project_id IN (?, ?)", projectID, allProjects).Scan(ctx, &cp.Row, &cp.Erased, &cp.Persons)
	return cp, err
}

// recordChange adds to the change counters of a project.
func (s store) recordChange(ctx context.Context, projectID, erased, persons int64) error {
	_, err := s.db.Write(ctx).NewInsert().Model(&changeRow{ProjectID: projectID, Erased: erased, People: persons}).
		On("CONFLICT (project_id) DO UPDATE").Set("erased = c.erased + excluded.erased").Set("people = c.people + excluded.people").
		Exec(ctx)
	return err
}

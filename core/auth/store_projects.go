package auth

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/fault"
)

// projectStore is the tables of projects and their keys.
type projectStore struct{ table }

type projectColumns struct {
	ID             int64 `bun:",pk,autoincrement"`
	OrganizationID string
	Name           string
	Timezone       string
	AnonymizeIPs   bool `bun:"anonymize_ips"`
	Settings       string
	CreatedAt      int64
}

func (c projectColumns) project() Project {
	return Project{
		ID: c.ID, OrganizationID: c.OrganizationID, Name: c.Name, Timezone: c.Timezone,
		AnonymizeIPs: c.AnonymizeIPs, Settings: c.Settings, CreatedAt: at(c.CreatedAt),
	}
}

type projectRow struct {
	bun.BaseModel `bun:"table:projects,alias:p"`
	projectColumns
	UpdatedAt int64
	RevokedAt int64 `bun:",nullzero"`
}

func projectRowOf(p Project) *projectRow {
	return &projectRow{
		projectColumns: projectColumns{
			ID: p.ID, OrganizationID: p.OrganizationID, Name: p.Name, Timezone: p.Timezone,
			AnonymizeIPs: p.AnonymizeIPs, Settings: p.Settings, CreatedAt: p.CreatedAt.UnixMicro(),
		},
		UpdatedAt: now().UnixMicro(),
	}
}

// restartProjects restarts the ids of projects at 1: an attempt that was rolled
// back may have used some.
func (s projectStore) restartProjects(ctx context.Context) error {
	if !s.db.Postgres() {
		return nil // ids roll back too
	}
	// Raw: bun has no ALTER TABLE.
	_, err := s.db.Write(ctx).NewRaw("ALTER TABLE projects ALTER COLUMN id RESTART WITH 1").Exec(ctx)
	return found(err, "restart the numbers of projects")
}

// addProject sets p.ID.
func (s projectStore) addProject(ctx context.Context, p *Project) error {
	row := projectRowOf(*p)
	if _, err := s.insert(ctx, row).Exec(ctx); err != nil {
		return found(err, "add project")
	}
	p.ID = row.ID
	return nil
}

func (s projectStore) project(ctx context.Context, id int64) (Project, error) {
	var row projectRow
	err := s.db.Read(ctx).NewSelect().Model(&row).Where("p.id = ? AND p.revoked_at IS NULL", id).Scan(ctx)
	return row.project(), found(err, "read project")
}

// projects lists those of an organization, or all when it is empty.
func (s projectStore) projects(ctx context.Context, organizationID string) ([]Project, error) {
	var rows []projectRow
	q := s.db.Read(ctx).NewSelect().Model(&rows).Where("p.revoked_at IS NULL").Order("p.id")
	if organizationID != "" {
		q = q.Where("p.organization_id = ?", organizationID)
	}
	if err := q.Scan(ctx); err != nil {
		return nil, found(err, "list projects")
	}
	out := make([]Project, len(rows))
	for i, r := range rows {
		out[i] = r.project()
	}
	return out, nil
}

func (s projectStore) saveProject(ctx context.Context, p Project) error {
	r, err := s.db.Write(ctx).NewUpdate().Model(projectRowOf(p)).
		Column("name", "timezone", "anonymize_ips", "settings", "updated_at").WherePK().Exec(ctx)
	return touched(r, err, "save project")
}

func (s projectStore) revokeProject(ctx context.Context, id int64) error {
	r, err := s.db.Write(ctx).NewUpdate().Table("projects").Set("revoked_at = ?", now().UnixMicro()).
		Where("id = ? AND revoked_at IS NULL", id).Exec(ctx)
	return touched(r, err, "revoke project")
}

type projectKeyRow struct {
	bun.BaseModel `bun:"table:project_keys,alias:k"`
	ID            int64 `bun:",pk,autoincrement"`
	ProjectID     int64
	Key           string
	Label         string
	CreatedBy     int64 `bun:",nullzero"`
	CreatedAt     int64
	RevokedAt     int64 `bun:",nullzero"`
}

func (s projectStore) addProjectKey(ctx context.Context, k *ProjectKey) error {
	row := &projectKeyRow{
		ProjectID: k.ProjectID, Key: k.Key, Label: k.Label, CreatedBy: k.CreatedBy, CreatedAt: k.CreatedAt.UnixMicro(),
	}
	_, err := s.insert(ctx, row).Exec(ctx)
	k.ID = row.ID
	return taken(err, "add project key", fault.Field("key", "unique", "This key is already in use."))
}

func (s projectStore) projectKeys(ctx context.Context, projectID int64) ([]ProjectKey, error) {
	var rows []projectKeyRow
	err := s.db.Read(ctx).NewSelect().Model(&rows).Where("k.project_id = ?", projectID).Order("k.id").Scan(ctx)
	if err != nil {
		return nil, found(err, "list project keys")
	}
	out := make([]ProjectKey, len(rows))
	for i, r := range rows {
		out[i] = ProjectKey{
			ID: r.ID, ProjectID: r.ProjectID, Key: r.Key, Label: r.Label, CreatedBy: r.CreatedBy,
			CreatedAt: at(r.CreatedAt), RevokedAt: at(r.RevokedAt),
		}
	}
	return out, nil
}

// tokens returns the oldest valid key of each project.
func (s projectStore) tokens(ctx context.Context, projectIDs []int64) (map[int64]string, error) {
	out := make(map[int64]string, len(projectIDs))
	if len(projectIDs) == 0 {
		return out, nil
	}
	var rows []struct {
		ProjectID int64
		Key       string
	}
	err := s.db.Read(ctx).NewSelect().TableExpr("project_keys AS k").Column("k.project_id", "k.key").
		Where(`k.id IN (SELECT min(id) FROM project_keys WHERE revoked_at IS NULL AND project_id IN ? GROUP BY project_id)`,
			bun.Tuple(projectIDs)).Scan(ctx, &rows)
	if err != nil {
		return nil, found(err, "find the keys of projects")
	}
	for _, r := range rows {
		out[r.ProjectID] = r.Key
	}
	return out, nil
}

func (s projectStore) revokeProjectKey(ctx context.Context, projectID, id int64) error {
	r, err := s.db.Write(ctx).NewUpdate().Table("project_keys").Set("revoked_at = ?", now().UnixMicro()).
		Where("id = ? AND project_id = ? AND revoked_at IS NULL", id, projectID).Exec(ctx)
	return touched(r, err, "revoke project key")
}

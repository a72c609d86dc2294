package auth

import (
	"context"

	"github.com/guidonhq/guidon/core/auth/apikey"
)

// CreateProject creates a project and its first key.
func (m *projectManager) CreateProject(ctx context.Context, in NewProject) (Project, ProjectKey, error) {
	p, err := in.project()
	if err != nil {
		return Project{}, ProjectKey{}, err
	}
	var key ProjectKey
	err = m.change(ctx, func(ctx context.Context) error {
		if err := m.requireOrganization(ctx, in.OrganizationID); err != nil {
			return err
		}
		if err := m.store.addProject(ctx, &p); err != nil {
			return err
		}
		key = ProjectKey{ProjectID: p.ID, Key: apikey.New(apikey.ProjectPrefix), Label: "Default", CreatedAt: p.CreatedAt}
		return m.store.addProjectKey(ctx, &key)
	})
	if err != nil {
		return Project{}, ProjectKey{}, err
	}
	return p, key, nil
}

// project returns the checked project, without an id.
func (in NewProject) project() (Project, error) {
	name, err := apikey.CheckName("name", in.Name)
	if err != nil {
		return Project{}, err
	}
	if in.Timezone == "" {
		in.Timezone = "UTC"
	}
	if err := checkTimezone(in.Timezone); err != nil {
		return Project{}, err
	}
	return Project{
		OrganizationID: in.OrganizationID, Name: name, Timezone: in.Timezone,
		AnonymizeIPs: in.AnonymizeIPs, Settings: "{}", CreatedAt: now(),
	}, nil
}

// Projects lists the projects of an organization by id, or those of all when
// organizationID is empty.
func (m *projectManager) Projects(ctx context.Context, organizationID string) ([]Project, error) {
	return m.store.projects(ctx, organizationID)
}

// UpdateProject changes a project and returns the changed one.
func (m *projectManager) UpdateProject(ctx context.Context, id int64, c ProjectChange) (Project, error) {
	var p Project
	err := m.change(ctx, func(ctx context.Context) (err error) {
		if p, err = m.store.project(ctx, id); err != nil {
			return err
		}
		if err := c.apply(&p); err != nil {
			return err
		}
		return m.store.saveProject(ctx, p)
	})
	if err != nil {
		return Project{}, err
	}
	return p, nil
}

// RevokeProject closes a project: its keys become invalid and it is no longer
// listed. Its data is not deleted.
func (m *projectManager) RevokeProject(ctx context.Context, id int64) error {
	return m.change(ctx, func(ctx context.Context) error { return m.store.revokeProject(ctx, id) })
}

// CreateProjectKey adds a key to a project.
func (m *projectManager) CreateProjectKey(ctx context.Context, in NewProjectKey) (ProjectKey, error) {
	k := ProjectKey{ProjectID: in.ProjectID, Key: in.Key, CreatedBy: in.CreatedBy, CreatedAt: now()}
	if k.Key == "" {
		k.Key = apikey.New(apikey.ProjectPrefix)
	} else if err := apikey.CheckOwn(k.Key); err != nil {
		return ProjectKey{}, err
	}
	var err error
	if k.Label, err = apikey.CheckName("label", in.Label); err != nil {
		return ProjectKey{}, err
	}
	err = m.change(ctx, func(ctx context.Context) error {
		if _, err := m.store.project(ctx, in.ProjectID); err != nil {
			return invalidIfMissing(err, "project_id", "There is no such project.")
		}
		return m.store.addProjectKey(ctx, &k)
	})
	if err != nil {
		return ProjectKey{}, err
	}
	return k, nil
}

// ProjectKeys lists the keys of a project by id, revoked ones too.
func (m *projectManager) ProjectKeys(ctx context.Context, projectID int64) ([]ProjectKey, error) {
	return m.store.projectKeys(ctx, projectID)
}

// Tokens returns the oldest valid key of each project: the one that is shown as
// the key of the project. Projects without a key are omitted.
func (m *projectManager) Tokens(ctx context.Context, projectIDs []int64) (map[int64]string, error) {
	return m.store.tokens(ctx, projectIDs)
}

// RevokeProjectKey invalidates a key of a project.
func (m *projectManager) RevokeProjectKey(ctx context.Context, projectID, id int64) error {
	return m.change(ctx, func(ctx context.Context) error { return m.store.revokeProjectKey(ctx, projectID, id) })
}

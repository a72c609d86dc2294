package auth

import (
	"context"

	"github.com/guidonhq/guidon/core/fault"
)

// CreateProject makes a project and its first key.
func (s *Service) CreateProject(ctx context.Context, in NewProject) (Project, ProjectKey, error) {
	p, err := in.project()
	if err != nil {
		return Project{}, ProjectKey{}, err
	}
	var key ProjectKey
	err = s.change(ctx, func(ctx context.Context) error {
		if err := s.needOrganization(ctx, in.OrganizationID); err != nil {
			return err
		}
		if err := s.store.addProject(ctx, &p); err != nil {
			return err
		}
		key = ProjectKey{ProjectID: p.ID, Key: freshKey(ProjectPrefix), Label: "Default", CreatedAt: p.CreatedAt}
		return s.store.addProjectKey(ctx, &key)
	})
	if err != nil {
		return Project{}, ProjectKey{}, err
	}
	return p, key, nil
}

// project is the checked project, without an id.
func (in NewProject) project() (Project, error) {
	name, err := checkName("name", in.Name)
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
func (s *Service) Projects(ctx context.Context, organizationID string) ([]Project, error) {
	return s.store.projects(ctx, organizationID)
}

// UpdateProject changes a project and returns it as it is then.
func (s *Service) UpdateProject(ctx context.Context, id int64, c ProjectChange) (Project, error) {
	var p Project
	err := s.change(ctx, func(ctx context.Context) (err error) {
		if p, err = s.store.project(ctx, id); err != nil {
			return err
		}
		if err := c.apply(&p); err != nil {
			return err
		}
		return s.store.saveProject(ctx, p)
	})
	if err != nil {
		return Project{}, err
	}
	return p, nil
}

// RevokeProject closes a project: its keys are refused and nobody sees it any
// more. Nothing it holds is deleted.
func (s *Service) RevokeProject(ctx context.Context, id int64) error {
	return s.change(ctx, func(ctx context.Context) error { return s.store.revokeProject(ctx, id) })
}

// CreateProjectKey gives a project one more key.
func (s *Service) CreateProjectKey(ctx context.Context, in NewProjectKey) (ProjectKey, error) {
	k := ProjectKey{ProjectID: in.ProjectID, Key: in.Key, CreatedBy: in.CreatedBy, CreatedAt: now()}
	if k.Key == "" {
		k.Key = freshKey(ProjectPrefix)
	} else if err := checkOwnKey(k.Key); err != nil {
		return ProjectKey{}, err
	}
	var err error
	if k.Label, err = checkName("label", in.Label); err != nil {
		return ProjectKey{}, err
	}
	err = s.change(ctx, func(ctx context.Context) error {
		if _, err := s.store.project(ctx, in.ProjectID); err != nil {
			return missing(err, "project_id", "There is no such project.")
		}
		return s.store.addProjectKey(ctx, &k)
	})
	if err != nil {
		return ProjectKey{}, err
	}
	return k, nil
}

// ProjectKeys lists the keys of a project by id, revoked ones too.
func (s *Service) ProjectKeys(ctx context.Context, projectID int64) ([]ProjectKey, error) {
	return s.store.projectKeys(ctx, projectID)
}

// Tokens returns, for each of the projects, its oldest key that is good: the
// one to show people who ask for the key of the project. Projects without one
// are absent.
func (s *Service) Tokens(ctx context.Context, projectIDs []int64) (map[int64]string, error) {
	return s.store.tokens(ctx, projectIDs)
}

// RevokeProjectKey makes a key of a project unknown from now on.
func (s *Service) RevokeProjectKey(ctx context.Context, projectID, id int64) error {
	return s.change(ctx, func(ctx context.Context) error { return s.store.revokeProjectKey(ctx, projectID, id) })
}

// missing turns NotFound into a failure of the field that named the thing.
func missing(err error, attr, detail string) error {
	if fault.Is(err, fault.NotFound) {
		return fault.Field(attr, "does_not_exist", detail).Because(err)
	}
	return err
}

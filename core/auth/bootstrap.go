package auth

import (
	"context"
	"fmt"
)

// Credentials are the accounts of the first start. The keys are secrets, shown
// once.
type Credentials struct {
	Organization Organization
	Project      Project
	User         User
	ProjectKey   string
	PersonalKey  string
}

// Bootstrap fills an empty database: an organization, project 1, a user who owns
// the organization and is an operator, a project key, and a personal key with all scopes. It returns
// nil if there is an organization already. Of concurrent processes one fills the
// database.
func (s *Service) Bootstrap(ctx context.Context) (*Credentials, error) {
	existing, err := s.tx.store.organizations(ctx)
	if err != nil || len(existing) > 0 {
		return nil, err
	}
	var c *Credentials
	err = s.tx.change(ctx, func(ctx context.Context) error {
		// Check again: change excludes other changes until it commits.
		if existing, err := s.tx.store.organizations(ctx); err != nil || len(existing) > 0 {
			return err
		}
		c, err = s.populate(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("set up the first project: %w", err)
	}
	return c, nil
}

func (s *Service) populate(ctx context.Context) (*Credentials, error) {
	var c Credentials
	var err error
	if c.Organization, err = s.CreateOrganization(ctx, "My organization"); err != nil {
		return nil, err
	}
	if err := s.tx.store.restartProjects(ctx); err != nil {
		return nil, err
	}
	var key ProjectKey
	if c.Project, key, err = s.CreateProject(ctx, NewProject{OrganizationID: c.Organization.ID, Name: "My project"}); err != nil {
		return nil, err
	}
	c.User, err = s.CreateUser(ctx, NewUser{
		Email: "admin@localhost", FirstName: "Admin", OrganizationID: c.Organization.ID, Level: LevelOwner, Operator: true,
	})
	if err != nil {
		return nil, err
	}
	if _, err := s.UpdateUser(ctx, c.User.ID, UserChange{CurrentProjectID: &c.Project.ID}); err != nil {
		return nil, err
	}
	_, c.PersonalKey, err = s.CreatePersonalKey(ctx, NewPersonalKey{UserID: c.User.ID, Label: "First key", Scopes: []string{"*"}})
	if err != nil {
		return nil, err
	}
	c.ProjectKey = key.Key
	return &c, nil
}

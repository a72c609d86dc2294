// Package seed fills a fresh server with the content of a seed file: roles, projects with
// their keys and definitions, and users.
//
// Accounts are made by core/auth, definitions by requests to the management API within
// the process, so that every rule of the API holds. Definitions are made in the order of
// the file, but after those that they refer to: numeric ids are the same after each start
// with the same file. A failure names the lines of the file. Mark and Incomplete tell the
// next start of a seed that did not come to its end.
package seed

import (
	"context"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/definitionfile"
	"github.com/guidonhq/guidon/core/fault"
)

// Call sends a management request to the server in this process.
type Call func(method, path, key string, body []byte) (status int, answer []byte, err error)

// Project is a project that was made.
type Project struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	Key  string `json:"key"`
}

// Result has the keys of the server. They are secrets of a test.
type Result struct {
	Projects    []Project `json:"projects"`
	PersonalKey string    `json:"personal_key"`
}

// Apply makes what the file has. first are the accounts of the first start: its project
// becomes the first one of the file, and its user has the personal key of the file.
func Apply(ctx context.Context, f *definitionfile.File, first *auth.Credentials, accounts *auth.Service, call Call) (*Result, error) {
	s := &seeder{file: f, first: first, accounts: accounts, call: call, result: &Result{PersonalKey: first.PersonalKey}, roles: map[string]any{}}
	projects := f.Projects
	if len(projects) == 0 {
		projects = []definitionfile.Project{{Name: first.Project.Name}}
	}
	if err := s.addRoles(); err != nil {
		return nil, err
	}
	for i, p := range projects {
		if err := s.addProject(ctx, i, p); err != nil {
			return nil, s.at(p.Line, "project "+p.Name, err)
		}
	}
	for _, u := range f.Users {
		if err := s.addUser(ctx, u); err != nil {
			return nil, s.at(u.Line, "user "+u.Email, err)
		}
	}
	for i, p := range projects {
		if err := s.addDefinitions(s.result.Projects[i].ID, p); err != nil {
			return nil, err
		}
	}
	if err := s.setPersonalKey(ctx); err != nil {
		return nil, s.at(1, "personal_key", err)
	}
	return s.result, nil
}

type seeder struct {
	file     *definitionfile.File
	first    *auth.Credentials
	accounts *auth.Service
	call     Call
	result   *Result
	roles    map[string]any // ids by name
}

// at adds a line of the file to err.
func (s *seeder) at(line int, what string, err error) *definitionfile.Error {
	text := err.Error()
	if f := fault.From(err); f != nil {
		text = f.Detail
		if f.Attr != "" {
			text = f.Attr + ": " + f.Detail
		}
	}
	return &definitionfile.Error{File: s.file.Name, Problems: []definitionfile.Problem{{Line: max(line, 1), Text: what + ": " + text}}}
}

func (s *seeder) addProject(ctx context.Context, i int, p definitionfile.Project) error {
	project, key, err := s.makeProject(ctx, i, p)
	if err != nil {
		return err
	}
	if p.Key != "" {
		if _, err := s.accounts.CreateProjectKey(ctx, auth.NewProjectKey{ProjectID: project.ID, Label: "Seed", Key: p.Key}); err != nil {
			return err
		}
		key = p.Key
	}
	s.result.Projects = append(s.result.Projects, Project{ID: project.ID, Name: project.Name, Key: key})
	return nil
}

// makeProject renames the project of the first start for the first project of the file,
// and creates the others.
func (s *seeder) makeProject(ctx context.Context, i int, p definitionfile.Project) (auth.Project, string, error) {
	if i == 0 {
		project, err := s.accounts.UpdateProject(ctx, s.first.Project.ID, auth.ProjectChange{Name: &p.Name})
		return project, s.first.ProjectKey, err
	}
	project, key, err := s.accounts.CreateProject(ctx, auth.NewProject{OrganizationID: s.first.Organization.ID, Name: p.Name})
	return project, key.Key, err
}

var levels = map[string]int{"member": auth.LevelMember, "admin": auth.LevelAdmin, "owner": auth.LevelOwner}

func (s *seeder) addUser(ctx context.Context, u definitionfile.User) error {
	user, err := s.accounts.CreateUser(ctx, auth.NewUser{
		Email: u.Email, FirstName: u.Name, OrganizationID: s.first.Organization.ID, Level: levels[u.Level], Operator: u.Operator,
	})
	if err != nil || u.Key == "" {
		return err
	}
	return s.addKey(ctx, user.ID, u.Key)
}

func (s *seeder) addKey(ctx context.Context, user int64, secret string) error {
	_, _, err := s.accounts.CreatePersonalKey(ctx, auth.NewPersonalKey{UserID: user, Label: "Seed", Scopes: []string{"*"}, Secret: secret})
	return err
}

// setPersonalKey gives the first user the personal key of the file.
func (s *seeder) setPersonalKey(ctx context.Context) error {
	if s.file.PersonalKey == "" {
		return nil
	}
	s.result.PersonalKey = s.file.PersonalKey
	return s.addKey(ctx, s.first.User.ID, s.file.PersonalKey)
}

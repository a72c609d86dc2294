package auth

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
)

var (
	errNoProject  = fault.New(fault.NotFound, "not_found", "Project not found.")
	errUnknownKey = fault.New(fault.Unauthenticated, "invalid_api_key",
		"Project API key invalid. You can find your project API key in the settings of your project.")
)

// snapshot is all projects and valid keys at one time. It is immutable.
type snapshot struct {
	version int64
	readAt  time.Time
	byKey   map[string]*Project
	byID    map[int64]*Project
	byHash  map[string]struct{} // digests of personal keys, in hexadecimal
}

// equal reports whether both hold the same projects and keys.
func (m *snapshot) equal(o *snapshot) bool {
	same := func(a, b *Project) bool { return *a == *b }
	return m != nil && maps.EqualFunc(m.byKey, o.byKey, same) && maps.EqualFunc(m.byID, o.byID, same)
}

// currentFor returns the project that the user works in, else the first project
// of the organization that the key may access; nil if there is none.
func (m *snapshot) currentFor(p *Principal) *Project {
	if chosen := m.byID[p.CurrentProjectID]; chosen != nil && visible(chosen, p) {
		return chosen
	}
	var first *Project
	for _, candidate := range m.byID {
		if visible(candidate, p) && (first == nil || candidate.ID < first.ID) {
			first = candidate
		}
	}
	return first
}

func visible(project *Project, p *Principal) bool {
	return project.OrganizationID == p.OrganizationID && p.CanAccessProject(project.ID)
}

// ProjectByKey returns the project of a project key, ignoring white space around
// it. It fails with Unauthenticated invalid_api_key for an unknown key, and
// with Unavailable fetch_team_fail if the database cannot be asked; keys in
// memory stay valid in that case. A key in memory costs no allocation. The key
// is not retained.
func (a *authenticator) ProjectByKey(ctx context.Context, key string) (Project, error) {
	if m := a.snapshot.Load(); m != nil {
		if p := m.byKey[key]; p != nil {
			return *p, nil
		}
	}
	return a.projectByUncachedKey(ctx, key)
}

func (a *authenticator) projectByUncachedKey(ctx context.Context, key string) (Project, error) {
	key, shape := apikey.Check(key)
	if shape != "" {
		return Project{}, fault.New(fault.Unauthenticated, "invalid_api_key", "Provided API key is not valid: "+string(shape))
	}
	if m := a.snapshot.Load(); m != nil {
		if p := m.byKey[key]; p != nil {
			return *p, nil
		}
	}
	if !a.unknown.has(key) {
		m, err := a.refreshedSince(ctx, time.Now())
		if err != nil {
			return Project{}, err
		}
		if p := m.byKey[key]; p != nil {
			return *p, nil
		}
		a.unknown.add(strings.Clone(key))
	}
	a.metrics.unknownKeys.Inc()
	return Project{}, errUnknownKey
}

// Current is the name by which ProjectFor returns the project that the user
// works in.
const Current = "@current"

// ProjectFor returns the project with the number idOrCurrent, or for Current the
// one that the user works in. It fails with NotFound if the organization of p
// has no such project, with Forbidden if the key of p may not access it, and
// with Unavailable if the database cannot be asked.
func (a *authenticator) ProjectFor(ctx context.Context, p *Principal, idOrCurrent string) (Project, error) {
	if p == nil {
		return Project{}, errNoProject
	}
	match := func(m *snapshot) *Project { return m.currentFor(p) }
	if idOrCurrent != Current {
		id, err := strconv.ParseInt(idOrCurrent, 10, 64)
		if err != nil {
			return Project{}, errNoProject.Because(err)
		}
		match = func(m *snapshot) *Project { return m.byID[id] }
	}
	project, err := a.find(ctx, match)
	switch {
	case err != nil:
		return Project{}, err
	case project == nil || project.OrganizationID != p.OrganizationID:
		return Project{}, errNoProject
	case !p.CanAccessProject(project.ID):
		return Project{}, fault.Newf(fault.Forbidden, "permission_denied",
			"API key does not have access to the requested project: ID %d.", project.ID)
	}
	return *project, nil
}

// find searches the snapshot, and searches again after a refresh.
func (a *authenticator) find(ctx context.Context, match func(*snapshot) *Project) (*Project, error) {
	if m := a.snapshot.Load(); m != nil {
		if p := match(m); p != nil {
			return p, nil
		}
	}
	m, err := a.refreshedSince(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	return match(m), nil
}

// Project returns the project with that id, or NotFound.
func (a *authenticator) Project(ctx context.Context, id int64) (Project, error) {
	p, err := a.find(ctx, func(m *snapshot) *Project { return m.byID[id] })
	if err != nil {
		return Project{}, err
	}
	if p == nil {
		return Project{}, errNoProject
	}
	return *p, nil
}

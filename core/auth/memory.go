package auth

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

var (
	errNoProject  = fault.New(fault.NotFound, "not_found", "Project not found.")
	errUnknownKey = fault.New(fault.Unauthenticated, "invalid_api_key",
		"Project API key invalid. You can find your project API key in the settings of your project.")
)

// memory is every project and every good project key at one moment. It never
// changes; a change makes another one.
type memory struct {
	version int64
	readAt  time.Time
	byKey   map[string]*Project
	byID    map[int64]*Project
}

// holdsSame reports whether both hold the same projects and keys.
func (m *memory) holdsSame(o *memory) bool {
	same := func(a, b *Project) bool { return *a == *b }
	return m != nil && maps.EqualFunc(m.byKey, o.byKey, same) && maps.EqualFunc(m.byID, o.byID, same)
}

// currentFor is the project the user chose, else the first of the
// organization that the key may touch; nil when there is none.
func (m *memory) currentFor(p *Principal) *Project {
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

// ProjectByKey returns the project a project key belongs to. White space
// around the key does not matter. It fails with Unauthenticated
// invalid_api_key when nobody has the key, and with Unavailable
// fetch_team_fail when that cannot be found out now; a key that was known
// stays known while the store is down. A known key costs no allocation. The
// key is not kept.
func (s *Service) ProjectByKey(ctx context.Context, key string) (Project, error) {
	if m := s.memory.Load(); m != nil {
		if p := m.byKey[key]; p != nil {
			return *p, nil
		}
	}
	return s.projectByRareKey(ctx, key)
}

func (s *Service) projectByRareKey(ctx context.Context, key string) (Project, error) {
	key, shape := CheckKey(key)
	if shape != "" {
		return Project{}, fault.New(fault.Unauthenticated, "invalid_api_key", "Provided API key is not valid: "+string(shape))
	}
	if m := s.memory.Load(); m != nil {
		if p := m.byKey[key]; p != nil {
			return *p, nil
		}
	}
	if !s.unknown.has(key) {
		m, err := s.current(ctx, time.Now())
		if err != nil {
			return Project{}, err
		}
		if p := m.byKey[key]; p != nil {
			return *p, nil
		}
		s.unknown.add(strings.Clone(key))
	}
	s.metrics.unknownKeys.Inc()
	return Project{}, errUnknownKey
}

// Current is what ProjectFor takes for the project the user works in.
const Current = "@current"

// ProjectFor returns the project with the number idOrCurrent, or for Current
// the one the user works in. It fails with NotFound when there is none in the
// organization of p, with Forbidden when the key of p is kept away from it,
// and with Unavailable when that cannot be found out now.
func (s *Service) ProjectFor(ctx context.Context, p *Principal, idOrCurrent string) (Project, error) {
	if p == nil {
		return Project{}, errNoProject
	}
	find := func(m *memory) *Project { return m.currentFor(p) }
	if idOrCurrent != Current {
		id, err := strconv.ParseInt(idOrCurrent, 10, 64)
		if err != nil {
			return Project{}, errNoProject.Because(err)
		}
		find = func(m *memory) *Project { return m.byID[id] }
	}
	project, err := s.recall(ctx, find)
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

// recall looks into memory, and once more when memory is surely current.
func (s *Service) recall(ctx context.Context, find func(*memory) *Project) (*Project, error) {
	if m := s.memory.Load(); m != nil {
		if p := find(m); p != nil {
			return p, nil
		}
	}
	m, err := s.current(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	return find(m), nil
}

// Project returns the project with that id, NotFound when there is none.
func (s *Service) Project(ctx context.Context, id int64) (Project, error) {
	p, err := s.recall(ctx, func(m *memory) *Project { return m.byID[id] })
	if err != nil {
		return Project{}, err
	}
	if p == nil {
		return Project{}, errNoProject
	}
	return *p, nil
}

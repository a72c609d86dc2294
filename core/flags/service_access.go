package flags

import (
	"context"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
)

// Roles answers what people may do by the roles they have.
type Roles interface {
	// Levels returns all that decides what p may do, apart from the flag.
	Levels(ctx context.Context, p *auth.Principal) (auth.Levels, error)
	// RolesByID returns those of the roles that the organization has.
	RolesByID(ctx context.Context, organizationID string, ids []string) (map[string]auth.Role, error)
}

// RoleAccess lets the members of a role edit one flag although their
// level is only to view flags.
type RoleAccess struct {
	ID        int64
	FlagID    int64
	RoleID    string
	AddedAt   time.Time
	UpdatedAt time.Time
}

// mayEdit is nil when who may change the flag, Forbidden otherwise.
func (s *Service) mayEdit(ctx context.Context, who *auth.Principal, f *Flag) error {
	may, err := s.CanEdit(ctx, who, f)
	if err != nil {
		return err
	}
	if !may[f.ID] {
		return fault.New(fault.Forbidden, "permission_denied", "You don't have edit permissions for this feature flag.")
	}
	return nil
}

// CanEdit returns, by id, which of the flags the caller may change.
func (s *Service) CanEdit(ctx context.Context, who *auth.Principal, list ...*Flag) (map[int64]bool, error) {
	levels, err := s.deps.Roles.Levels(ctx, who)
	if err != nil {
		return nil, err
	}
	may := make(map[int64]bool, len(list))
	var unsure []int64
	for _, f := range list {
		if levels.CanEdit(created(who, f), nil) {
			may[f.ID] = true
		} else {
			unsure = append(unsure, f.ID)
		}
	}
	if len(unsure) == 0 || len(levels.Roles) == 0 {
		return may, nil
	}
	access, err := s.store.rolesOfFlags(ctx, unsure)
	if err != nil {
		return nil, err
	}
	for _, id := range unsure {
		may[id] = levels.CanEdit(false, access[id])
	}
	return may, nil
}

func created(who *auth.Principal, f *Flag) bool {
	return f.CreatedBy != 0 && f.CreatedBy == who.User.ID
}

// errNoParent is the answer for role access of a flag that is not there.
var errNoParent = fault.New(fault.NotFound, "not_found", "Feature flag not found.")

// parent reads the flag whose role access is meant; with write it also checks
// that who may say which roles may change it.
func (s *Service) parent(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64, write bool) (*Flag, error) {
	f, err := s.store.flag(ctx, project.ID, flagID)
	if fault.Is(err, fault.NotFound) {
		return nil, errNoParent
	}
	if err != nil || !write {
		return f, err
	}
	levels, err := s.deps.Roles.Levels(ctx, who)
	if err != nil {
		return nil, err
	}
	if !levels.CanGiveAccess(created(who, f)) {
		return nil, fault.New(fault.Forbidden, "permission_denied", "You can't edit roles for this feature flag.")
	}
	return f, nil
}

// RoleAccesses lists the roles that were given a flag, oldest first; roles
// that are gone are left out. The flag comes with them.
func (s *Service) RoleAccesses(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64) (*Flag, []RoleAccess, error) {
	f, err := s.parent(ctx, who, project, flagID, false)
	if err != nil {
		return nil, nil, err
	}
	list, err := s.store.roleAccesses(ctx, flagID)
	if err != nil {
		return nil, nil, err
	}
	roles, err := s.deps.Roles.RolesByID(ctx, project.OrganizationID, roleIDs(list))
	if err != nil {
		return nil, nil, err
	}
	list = slices.DeleteFunc(list, func(a RoleAccess) bool { _, ok := roles[a.RoleID]; return !ok })
	return f, list, nil
}

func roleIDs(list []RoleAccess) []string {
	ids := make([]string, len(list))
	for i, a := range list {
		ids[i] = a.RoleID
	}
	return ids
}

// RoleAccess returns one of the roles that were given a flag, or NotFound.
func (s *Service) RoleAccess(ctx context.Context, who *auth.Principal, project auth.Project, flagID, id int64) (*Flag, RoleAccess, error) {
	f, err := s.parent(ctx, who, project, flagID, false)
	if err != nil {
		return nil, RoleAccess{}, err
	}
	a, err := s.store.roleAccess(ctx, flagID, id)
	return f, a, err
}

// GiveAccess lets the people of a role change a flag. It fails with Invalid on
// the field role_id for an unknown role and for one that has access already,
// and with Forbidden.
func (s *Service) GiveAccess(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64, roleID string) (*Flag, RoleAccess, error) {
	var f *Flag
	var a RoleAccess
	err := s.deps.Revisions.Change(ctx, project.ID, func(ctx context.Context) (err error) {
		if f, err = s.parent(ctx, who, project, flagID, true); err != nil {
			return err
		}
		roles, err := s.deps.Roles.RolesByID(ctx, project.OrganizationID, []string{roleID})
		if err != nil {
			return err
		}
		if _, ok := roles[roleID]; !ok {
			return fault.Fieldf("role_id", "does_not_exist", "Invalid pk \"%s\" - object does not exist.", roleID)
		}
		now := s.clock()
		a = RoleAccess{FlagID: flagID, RoleID: roleID, AddedAt: now, UpdatedAt: now}
		return s.store.addRoleAccess(ctx, &a)
	})
	if err != nil {
		return nil, RoleAccess{}, err
	}
	return f, a, nil
}

// TakeAccess takes a flag away from a role again.
func (s *Service) TakeAccess(ctx context.Context, who *auth.Principal, project auth.Project, flagID, id int64) error {
	return s.deps.Revisions.Change(ctx, project.ID, func(ctx context.Context) error {
		if _, err := s.parent(ctx, who, project, flagID, true); err != nil {
			return err
		}
		return s.store.removeRoleAccess(ctx, flagID, id)
	})
}

// rolesOf finds the roles of accesses, and which flags these roles were given.
func (s *Service) rolesOf(ctx context.Context, project auth.Project, list []RoleAccess) (map[string]auth.Role, map[string][]auth.RoleFlag, error) {
	ids := roleIDs(list)
	roles, err := s.deps.Roles.RolesByID(ctx, project.OrganizationID, ids)
	if err != nil {
		return nil, nil, err
	}
	given, err := s.store.FlagsOfRoles(ctx, []int64{project.ID}, ids)
	return roles, given, err
}

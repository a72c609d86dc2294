package flags

import (
	"context"
	"slices"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/access"
)

// Roles reads roles and access levels.
type Roles interface {
	access.Roles
	// RolesByID returns the roles that exist in the organization.
	RolesByID(ctx context.Context, organizationID string, ids []string) (map[string]auth.Role, error)
}

// RoleAccess allows the members of a role to edit one flag.
type RoleAccess = access.RoleAccess

// MayEdit returns nil if the caller may edit the flag, NotFound for an unknown
// flag and Forbidden otherwise. Handlers call it before they read the body, so
// that a caller without the right learns nothing about the rules.
func (m *accessManager) MayEdit(ctx context.Context, who *auth.Principal, project auth.Project, id int64) error {
	f, err := m.store.flag(ctx, project.ID, id)
	if err != nil {
		return err
	}
	return m.mayEdit(ctx, who, f)
}

// mayEdit returns nil if the caller may edit the flag, Forbidden otherwise.
func (m *accessManager) mayEdit(ctx context.Context, who *auth.Principal, f *Flag) error {
	return m.policy.RequireFlagEditor(ctx, who, f.ref())
}

// MayCreate returns nil if the caller may create flags, Forbidden otherwise.
func (m *accessManager) MayCreate(ctx context.Context, who *auth.Principal) error {
	return m.policy.RequireEditor(ctx, who)
}

// CanEdit reports for each flag, by id, whether the caller may edit it.
func (m *accessManager) CanEdit(ctx context.Context, who *auth.Principal, list ...*Flag) (map[int64]bool, error) {
	refs := make([]access.Flag, len(list))
	for i, f := range list {
		refs[i] = f.ref()
	}
	return m.policy.Editable(ctx, who, refs...)
}

// ref returns what the access policy reads of f.
func (f *Flag) ref() access.Flag { return access.Flag{ID: f.ID, CreatedBy: f.CreatedBy} }

// errNoParent is the answer to role access of an unknown flag.
var errNoParent = fault.New(fault.NotFound, "not_found", "Feature flag not found.")

// parent reads the flag of a role access. With write it also checks that the
// caller may change its role access.
func (m *accessManager) parent(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64, write bool) (*Flag, error) {
	f, err := m.store.flag(ctx, project.ID, flagID)
	if fault.Is(err, fault.NotFound) {
		return nil, errNoParent
	}
	if err != nil || !write {
		return f, err
	}
	return f, m.policy.RequireGiver(ctx, who, f.ref())
}

// MayGiveAccess returns nil if the caller may change the role access of a flag,
// NotFound for an unknown flag and Forbidden otherwise.
func (m *accessManager) MayGiveAccess(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64) error {
	_, err := m.parent(ctx, who, project, flagID, true)
	return err
}

// RoleAccesses returns a flag and its role accesses, oldest first. Accesses of
// deleted roles are left out.
func (m *accessManager) RoleAccesses(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64) (*Flag, []RoleAccess, error) {
	f, err := m.parent(ctx, who, project, flagID, false)
	if err != nil {
		return nil, nil, err
	}
	list, err := m.store.RoleAccesses(ctx, flagID)
	if err != nil {
		return nil, nil, err
	}
	roles, err := m.deps.Roles.RolesByID(ctx, project.OrganizationID, roleIDs(list))
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

// RoleAccess returns a flag and one of its role accesses, or NotFound.
func (m *accessManager) RoleAccess(ctx context.Context, who *auth.Principal, project auth.Project, flagID, id int64) (*Flag, RoleAccess, error) {
	f, err := m.parent(ctx, who, project, flagID, false)
	if err != nil {
		return nil, RoleAccess{}, err
	}
	a, err := m.store.RoleAccess(ctx, flagID, id)
	return f, a, err
}

// GiveAccess gives a role access to a flag. It fails with NotFound, with
// Forbidden, or with Invalid on the field role_id for an unknown role and for one
// that has access already.
func (m *accessManager) GiveAccess(ctx context.Context, who *auth.Principal, project auth.Project, flagID int64, roleID string) (*Flag, RoleAccess, error) {
	var f *Flag
	var a RoleAccess
	err := m.deps.Revisions.Change(ctx, project.ID, func(ctx context.Context) (err error) {
		if f, err = m.parent(ctx, who, project, flagID, true); err != nil {
			return err
		}
		roles, err := m.deps.Roles.RolesByID(ctx, project.OrganizationID, []string{roleID})
		if err != nil {
			return err
		}
		role, ok := roles[roleID]
		if !ok {
			return fault.Fieldf("role_id", "does_not_exist", "Invalid pk \"%s\" - object does not exist.", roleID)
		}
		now := m.now()
		a = RoleAccess{FlagID: flagID, RoleID: roleID, AddedAt: now, UpdatedAt: now}
		if err := m.store.AddRoleAccess(ctx, &a); err != nil {
			return err
		}
		return m.logAccess(ctx, who, f, a.ID, activity.Created, accessState{}, accessState{&role.Name})
	})
	if err != nil {
		return nil, RoleAccess{}, err
	}
	return f, a, nil
}

// RemoveAccess removes a role access. It fails with NotFound or Forbidden.
func (m *accessManager) RemoveAccess(ctx context.Context, who *auth.Principal, project auth.Project, flagID, id int64) error {
	return m.deps.Revisions.Change(ctx, project.ID, func(ctx context.Context) error {
		f, err := m.parent(ctx, who, project, flagID, true)
		if err != nil {
			return err
		}
		a, err := m.store.RoleAccess(ctx, flagID, id)
		if err != nil {
			return err
		}
		roles, err := m.deps.Roles.RolesByID(ctx, project.OrganizationID, []string{a.RoleID})
		if err != nil {
			return err
		}
		if err := m.store.RemoveRoleAccess(ctx, flagID, id); err != nil {
			return err
		}
		role := roles[a.RoleID]
		return m.logAccess(ctx, who, f, id, activity.Deleted, accessState{&role.Name}, accessState{})
	})
}

// accessState is the state of a role access in the activity log: the name of the role, ""
// for a deleted one; nil without access.
type accessState struct {
	Role *string `json:"role"`
}

// logAccess adds the entry of a role access of f to the transaction of ctx.
func (m *accessManager) logAccess(ctx context.Context, who *auth.Principal, f *Flag, id int64, done string, before, after accessState) error {
	e := activity.NewEntry(who, f.ProjectID, activity.FlagAccess, id, done, m.now())
	e.Detail.Name, e.Detail.Changes = f.Key, activity.Diff(activity.FlagAccess, before, after)
	return m.activity.Add(ctx, e)
}

// rolesOf returns the roles of accesses, and the flags each role has access to.
func (m *accessManager) rolesOf(ctx context.Context, project auth.Project, list []RoleAccess) (map[string]auth.Role, map[string][]auth.RoleFlag, error) {
	ids := roleIDs(list)
	roles, err := m.deps.Roles.RolesByID(ctx, project.OrganizationID, ids)
	if err != nil {
		return nil, nil, err
	}
	given, err := m.store.FlagsOfRoles(ctx, []int64{project.ID}, ids)
	return roles, given, err
}

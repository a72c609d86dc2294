package auth

import (
	"context"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
)

// CreateRole creates a role without members.
func (m *roleManager) CreateRole(ctx context.Context, in NewRole) (Role, error) {
	name, err := apikey.CheckName("name", in.Name)
	if err != nil {
		return Role{}, err
	}
	if in.FlagsAccessLevel != 0 {
		if err := checkAccessLevel(in.FlagsAccessLevel); err != nil {
			return Role{}, err
		}
	}
	r := Role{
		ID: newUUID(), OrganizationID: in.OrganizationID, Name: name, FlagsAccessLevel: in.FlagsAccessLevel,
		CreatedAt: now(), Members: []RoleMember{},
	}
	err = m.change(ctx, func(ctx context.Context) error {
		o, err := m.store.organization(ctx, in.OrganizationID)
		if err != nil {
			return invalidIfMissing(err, "organization_id", "There is no such organization.")
		}
		if r.FlagsAccessLevel == 0 {
			r.FlagsAccessLevel = o.FlagsAccessLevel
		}
		if in.CreatedBy != 0 {
			u, _, err := m.store.user(ctx, in.CreatedBy)
			if err != nil {
				return invalidIfMissing(err, "created_by", "There is no such user.")
			}
			r.CreatedBy = &u
		}
		return m.store.addRole(ctx, r)
	})
	if err != nil {
		return Role{}, err
	}
	return r, nil
}

// Roles lists the roles of an organization, the oldest first.
func (m *roleManager) Roles(ctx context.Context, organizationID string) ([]Role, error) {
	return m.store.roles(ctx, organizationID)
}

// Role returns a role of an organization, NotFound when it has none with that
// id.
func (m *roleManager) Role(ctx context.Context, organizationID, id string) (Role, error) {
	roles, err := m.store.roles(ctx, organizationID, id)
	if err != nil {
		return Role{}, err
	}
	if len(roles) == 0 {
		return Role{}, fault.New(fault.NotFound, "not_found", "Not found.")
	}
	return roles[0], nil
}

// RolesByID returns those of the roles that the organization has, by id.
func (m *roleManager) RolesByID(ctx context.Context, organizationID string, ids []string) (map[string]Role, error) {
	out := make(map[string]Role, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	roles, err := m.store.roles(ctx, organizationID, ids...)
	if err != nil {
		return nil, err
	}
	for _, r := range roles {
		out[r.ID] = r
	}
	return out, nil
}

// UpdateRole changes a role and returns the changed one.
func (m *roleManager) UpdateRole(ctx context.Context, organizationID, id string, c RoleChange) (Role, error) {
	var r Role
	err := m.change(ctx, func(ctx context.Context) (err error) {
		if r, err = m.Role(ctx, organizationID, id); err != nil {
			return err
		}
		if c.Name != nil {
			if r.Name, err = apikey.CheckName("name", *c.Name); err != nil {
				return err
			}
		}
		if c.FlagsAccessLevel != nil {
			if err := checkAccessLevel(*c.FlagsAccessLevel); err != nil {
				return err
			}
			r.FlagsAccessLevel = *c.FlagsAccessLevel
		}
		return m.store.saveRole(ctx, r)
	})
	if err != nil {
		return Role{}, err
	}
	return r, nil
}

// DeleteRole deletes a role; its members lose its permissions.
func (m *roleManager) DeleteRole(ctx context.Context, organizationID, id string) error {
	return m.change(ctx, func(ctx context.Context) error { return m.store.removeRole(ctx, organizationID, id) })
}

// AddRoleMember gives a role to a member of its organization.
func (m *roleManager) AddRoleMember(ctx context.Context, organizationID, roleID string, userID int64) (RoleMember, error) {
	var added RoleMember
	err := m.change(ctx, func(ctx context.Context) error {
		if _, err := m.Role(ctx, organizationID, roleID); err != nil {
			return err
		}
		member, err := m.store.member(ctx, organizationID, userID)
		if err != nil {
			return invalidIfMissing(err, "user_uuid", "The user is not a member of this organization.")
		}
		when := now()
		added = RoleMember{ID: newUUID(), RoleID: roleID, User: member.User, JoinedAt: when, UpdatedAt: when}
		return m.store.addRoleMember(ctx, added)
	})
	if err != nil {
		return RoleMember{}, err
	}
	return added, nil
}

// RemoveRoleMember removes a member from a role; id is that of the RoleMember.
func (m *roleManager) RemoveRoleMember(ctx context.Context, organizationID, roleID, id string) error {
	return m.change(ctx, func(ctx context.Context) error {
		return m.store.removeRoleMember(ctx, organizationID, roleID, id)
	})
}

// Levels returns the access of p to flags of the organization, apart from the
// flag itself.
func (m *roleManager) Levels(ctx context.Context, p *Principal) (Levels, error) {
	o, err := m.store.organization(ctx, p.OrganizationID)
	if err != nil {
		return Levels{}, err
	}
	roles, err := m.store.levels(ctx, p.OrganizationID, p.User.ID)
	if err != nil {
		return Levels{}, err
	}
	return Levels{Default: o.FlagsAccessLevel, Admin: p.IsAdmin(), Roles: roles}, nil
}

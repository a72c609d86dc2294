package auth

import (
	"context"

	"github.com/guidonhq/guidon/core/fault"
)

// CreateRole makes a role without members.
func (s *Service) CreateRole(ctx context.Context, in NewRole) (Role, error) {
	name, err := checkName("name", in.Name)
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
	err = s.change(ctx, func(ctx context.Context) error {
		o, err := s.store.organization(ctx, in.OrganizationID)
		if err != nil {
			return missing(err, "organization_id", "There is no such organization.")
		}
		if r.FlagsAccessLevel == 0 {
			r.FlagsAccessLevel = o.FlagsAccessLevel
		}
		if in.CreatedBy != 0 {
			u, _, err := s.store.user(ctx, in.CreatedBy)
			if err != nil {
				return missing(err, "created_by", "There is no such user.")
			}
			r.CreatedBy = &u
		}
		return s.store.addRole(ctx, r)
	})
	if err != nil {
		return Role{}, err
	}
	return r, nil
}

// Roles lists the roles of an organization, the oldest first.
func (s *Service) Roles(ctx context.Context, organizationID string) ([]Role, error) {
	return s.store.roles(ctx, organizationID)
}

// Role returns a role of an organization, NotFound when it has none with that
// id.
func (s *Service) Role(ctx context.Context, organizationID, id string) (Role, error) {
	roles, err := s.store.roles(ctx, organizationID, id)
	if err != nil {
		return Role{}, err
	}
	if len(roles) == 0 {
		return Role{}, fault.New(fault.NotFound, "not_found", "Not found.")
	}
	return roles[0], nil
}

// RolesByID returns those of the roles that the organization has, by id.
func (s *Service) RolesByID(ctx context.Context, organizationID string, ids []string) (map[string]Role, error) {
	out := make(map[string]Role, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	roles, err := s.store.roles(ctx, organizationID, ids...)
	if err != nil {
		return nil, err
	}
	for _, r := range roles {
		out[r.ID] = r
	}
	return out, nil
}

// UpdateRole changes a role and returns it as it is then.
func (s *Service) UpdateRole(ctx context.Context, organizationID, id string, c RoleChange) (Role, error) {
	var r Role
	err := s.change(ctx, func(ctx context.Context) (err error) {
		if r, err = s.Role(ctx, organizationID, id); err != nil {
			return err
		}
		if c.Name != nil {
			if r.Name, err = checkName("name", *c.Name); err != nil {
				return err
			}
		}
		if c.FlagsAccessLevel != nil {
			if err := checkAccessLevel(*c.FlagsAccessLevel); err != nil {
				return err
			}
			r.FlagsAccessLevel = *c.FlagsAccessLevel
		}
		return s.store.saveRole(ctx, r)
	})
	if err != nil {
		return Role{}, err
	}
	return r, nil
}

// DeleteRole removes a role; its members lose what it allowed.
func (s *Service) DeleteRole(ctx context.Context, organizationID, id string) error {
	return s.change(ctx, func(ctx context.Context) error { return s.store.removeRole(ctx, organizationID, id) })
}

// AddRoleMember gives a role to a member of its organization.
func (s *Service) AddRoleMember(ctx context.Context, organizationID, roleID string, userID int64) (RoleMember, error) {
	var m RoleMember
	err := s.change(ctx, func(ctx context.Context) error {
		if _, err := s.Role(ctx, organizationID, roleID); err != nil {
			return err
		}
		member, err := s.store.member(ctx, organizationID, userID)
		if err != nil {
			return missing(err, "user_uuid", "The user is not a member of this organization.")
		}
		when := now()
		m = RoleMember{ID: newUUID(), RoleID: roleID, User: member.User, JoinedAt: when, UpdatedAt: when}
		return s.store.addRoleMember(ctx, m)
	})
	if err != nil {
		return RoleMember{}, err
	}
	return m, nil
}

// RemoveRoleMember takes a role away; id is that of the RoleMember.
func (s *Service) RemoveRoleMember(ctx context.Context, organizationID, roleID, id string) error {
	return s.change(ctx, func(ctx context.Context) error {
		return s.store.removeRoleMember(ctx, organizationID, roleID, id)
	})
}

// Levels returns all that decides, apart from a flag itself, what p may do with
// flags of their organization.
func (s *Service) Levels(ctx context.Context, p *Principal) (Levels, error) {
	o, err := s.store.organization(ctx, p.OrganizationID)
	if err != nil {
		return Levels{}, err
	}
	roles, err := s.store.levels(ctx, p.OrganizationID, p.User.ID)
	if err != nil {
		return Levels{}, err
	}
	return Levels{Default: o.FlagsAccessLevel, Admin: p.IsAdmin(), Roles: roles}, nil
}

package auth

import (
	"context"
	"slices"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
)

// CreateOrganization creates an organization without members. By default its
// members may edit each other's flags.
func (m *organizationManager) CreateOrganization(ctx context.Context, name string) (Organization, error) {
	name, err := apikey.CheckName("name", name)
	if err != nil {
		return Organization{}, err
	}
	when := now()
	o := Organization{ID: newUUID(), Name: name, FlagsAccessLevel: CanEdit, CreatedAt: when, UpdatedAt: when}
	if err := m.change(ctx, func(ctx context.Context) error { return m.store.addOrganization(ctx, o) }); err != nil {
		return Organization{}, err
	}
	return o, nil
}

// Organization returns the organization with that id, NotFound when there is
// none.
func (m *organizationManager) Organization(ctx context.Context, id string) (Organization, error) {
	return m.store.organization(ctx, id)
}

// Organizations lists all organizations, the oldest first.
func (m *organizationManager) Organizations(ctx context.Context) ([]Organization, error) {
	return m.store.organizations(ctx)
}

// UpdateOrganization changes an organization and returns the changed one.
func (m *organizationManager) UpdateOrganization(ctx context.Context, id string, c OrganizationChange) (Organization, error) {
	var o Organization
	err := m.change(ctx, func(ctx context.Context) (err error) {
		if o, err = m.store.organization(ctx, id); err != nil {
			return err
		}
		if c.Name != nil {
			if o.Name, err = apikey.CheckName("name", *c.Name); err != nil {
				return err
			}
		}
		if c.FlagsAccessLevel != nil {
			if err := checkAccessLevel(*c.FlagsAccessLevel); err != nil {
				return err
			}
			o.FlagsAccessLevel = *c.FlagsAccessLevel
		}
		o.UpdatedAt = now()
		return m.store.saveOrganization(ctx, o)
	})
	if err != nil {
		return Organization{}, err
	}
	return o, nil
}

// Members lists the members of an organization by user id.
func (m *organizationManager) Members(ctx context.Context, organizationID string) ([]Member, error) {
	return m.store.members(ctx, organizationID)
}

// AddMember adds a user to an organization.
func (m *organizationManager) AddMember(ctx context.Context, organizationID string, userID int64, level int) error {
	if err := CheckLevel(level); err != nil {
		return err
	}
	return m.change(ctx, func(ctx context.Context) error {
		if err := m.requireOrganization(ctx, organizationID); err != nil {
			return err
		}
		if _, _, err := m.store.user(ctx, userID); err != nil {
			return invalidIfMissing(err, "user", "There is no such user.")
		}
		return m.store.addMember(ctx, organizationID, userID, level)
	})
}

// SetMemberLevel sets the level of a member. The last owner cannot lose the level.
func (m *organizationManager) SetMemberLevel(ctx context.Context, organizationID string, userID int64, level int) error {
	if err := CheckLevel(level); err != nil {
		return err
	}
	return m.change(ctx, func(ctx context.Context) error {
		if level != LevelOwner {
			if err := m.requireAnotherOwner(ctx, userID, organizationID); err != nil {
				return err
			}
		}
		return m.store.saveLevel(ctx, organizationID, userID, level)
	})
}

// RemoveMember removes a user from an organization and its roles, and revokes the
// user's keys in it. The last owner cannot be removed.
func (m *organizationManager) RemoveMember(ctx context.Context, organizationID string, userID int64) error {
	return m.change(ctx, func(ctx context.Context) error {
		if err := m.requireAnotherOwner(ctx, userID, organizationID); err != nil {
			return err
		}
		return m.store.removeMember(ctx, organizationID, userID)
	})
}

// requireAnotherOwner fails if the user is the only owner of the organization,
// or of any if organizationID is empty.
func (t *transactor) requireAnotherOwner(ctx context.Context, userID int64, organizationID string) error {
	ids, err := t.store.onlyOwnerOf(ctx, userID)
	if err != nil {
		return err
	}
	if slices.Contains(ids, organizationID) || (organizationID == "" && len(ids) > 0) {
		return fault.New(fault.Conflict, "last_owner", "An organization needs an owner. Make somebody else an owner first.")
	}
	return nil
}

package auth

import (
	"context"
	"slices"

	"github.com/guidonhq/guidon/core/fault"
)

// CreateOrganization makes an organization without members. Its people may
// edit each other's flags until it is told otherwise.
func (m *organizationManager) CreateOrganization(ctx context.Context, name string) (Organization, error) {
	name, err := checkName("name", name)
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

// UpdateOrganization changes an organization and returns it as it is then.
func (m *organizationManager) UpdateOrganization(ctx context.Context, id string, c OrganizationChange) (Organization, error) {
	var o Organization
	err := m.change(ctx, func(ctx context.Context) (err error) {
		if o, err = m.store.organization(ctx, id); err != nil {
			return err
		}
		if c.Name != nil {
			if o.Name, err = checkName("name", *c.Name); err != nil {
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

// Members lists the people of an organization by the id of the user.
func (m *organizationManager) Members(ctx context.Context, organizationID string) ([]Member, error) {
	return m.store.members(ctx, organizationID)
}

// AddMember makes a user a member of one more organization.
func (m *organizationManager) AddMember(ctx context.Context, organizationID string, userID int64, level int) error {
	if err := checkLevel(level); err != nil {
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

// SetMemberLevel makes a member an owner, an admin or neither. The last owner
// stays one.
func (m *organizationManager) SetMemberLevel(ctx context.Context, organizationID string, userID int64, level int) error {
	if err := checkLevel(level); err != nil {
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

// RemoveMember takes a user out of an organization and its roles, and revokes
// the keys they had in it. The last owner stays.
func (m *organizationManager) RemoveMember(ctx context.Context, organizationID string, userID int64) error {
	return m.change(ctx, func(ctx context.Context) error {
		if err := m.requireAnotherOwner(ctx, userID, organizationID); err != nil {
			return err
		}
		return m.store.removeMember(ctx, organizationID, userID)
	})
}

// requireAnotherOwner fails when the organization, or any when it is empty, would
// have no owner without the user.
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

package auth

import (
	"context"
	"slices"

	"github.com/guidonhq/guidon/core/fault"
)

// CreateOrganization makes an organization without members. Its people may
// edit each other's flags until it is told otherwise.
func (s *Service) CreateOrganization(ctx context.Context, name string) (Organization, error) {
	name, err := checkName("name", name)
	if err != nil {
		return Organization{}, err
	}
	when := now()
	o := Organization{ID: newUUID(), Name: name, FlagsAccessLevel: CanEdit, CreatedAt: when, UpdatedAt: when}
	if err := s.change(ctx, func(ctx context.Context) error { return s.store.addOrganization(ctx, o) }); err != nil {
		return Organization{}, err
	}
	return o, nil
}

// Organization returns the organization with that id, NotFound when there is
// none.
func (s *Service) Organization(ctx context.Context, id string) (Organization, error) {
	return s.store.organization(ctx, id)
}

// Organizations lists all organizations, the oldest first.
func (s *Service) Organizations(ctx context.Context) ([]Organization, error) {
	return s.store.organizations(ctx)
}

// UpdateOrganization changes an organization and returns it as it is then.
func (s *Service) UpdateOrganization(ctx context.Context, id string, c OrganizationChange) (Organization, error) {
	var o Organization
	err := s.change(ctx, func(ctx context.Context) (err error) {
		if o, err = s.store.organization(ctx, id); err != nil {
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
		return s.store.saveOrganization(ctx, o)
	})
	if err != nil {
		return Organization{}, err
	}
	return o, nil
}

// needOrganization fails when there is no organization with that id.
func (s *Service) needOrganization(ctx context.Context, id string) error {
	_, err := s.store.organization(ctx, id)
	return missing(err, "organization_id", "There is no such organization.")
}

// Members lists the people of an organization by the id of the user.
func (s *Service) Members(ctx context.Context, organizationID string) ([]Member, error) {
	return s.store.members(ctx, organizationID)
}

// AddMember makes a user a member of one more organization.
func (s *Service) AddMember(ctx context.Context, organizationID string, userID int64, level int) error {
	if err := checkLevel(level); err != nil {
		return err
	}
	return s.change(ctx, func(ctx context.Context) error {
		if err := s.needOrganization(ctx, organizationID); err != nil {
			return err
		}
		if _, _, err := s.store.user(ctx, userID); err != nil {
			return missing(err, "user", "There is no such user.")
		}
		return s.store.addMember(ctx, organizationID, userID, level)
	})
}

// SetMemberLevel makes a member an owner, an admin or neither. The last owner
// stays one.
func (s *Service) SetMemberLevel(ctx context.Context, organizationID string, userID int64, level int) error {
	if err := checkLevel(level); err != nil {
		return err
	}
	return s.change(ctx, func(ctx context.Context) error {
		if level != LevelOwner {
			if err := s.needAnotherOwner(ctx, userID, organizationID); err != nil {
				return err
			}
		}
		return s.store.saveLevel(ctx, organizationID, userID, level)
	})
}

// RemoveMember takes a user out of an organization and its roles, and revokes
// the keys they had in it. The last owner stays.
func (s *Service) RemoveMember(ctx context.Context, organizationID string, userID int64) error {
	return s.change(ctx, func(ctx context.Context) error {
		if err := s.needAnotherOwner(ctx, userID, organizationID); err != nil {
			return err
		}
		return s.store.removeMember(ctx, organizationID, userID)
	})
}

// needAnotherOwner fails when the organization, or any when it is empty, would
// have no owner without the user.
func (s *Service) needAnotherOwner(ctx context.Context, userID int64, organizationID string) error {
	ids, err := s.store.ownerless(ctx, userID)
	if err != nil {
		return err
	}
	if slices.Contains(ids, organizationID) || (organizationID == "" && len(ids) > 0) {
		return fault.New(fault.Conflict, "last_owner", "An organization needs an owner. Make somebody else an owner first.")
	}
	return nil
}

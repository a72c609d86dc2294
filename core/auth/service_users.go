package auth

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/fault"
)

// CreateUser makes a user and a member of the organization, who works there.
func (s *Service) CreateUser(ctx context.Context, in NewUser) (User, error) {
	u, err := in.user()
	if err != nil {
		return User{}, err
	}
	if in.Level == 0 {
		in.Level = LevelMember
	}
	if err := checkLevel(in.Level); err != nil {
		return User{}, err
	}
	err = s.change(ctx, func(ctx context.Context) error {
		if err := s.needOrganization(ctx, in.OrganizationID); err != nil {
			return err
		}
		if err := s.store.addUser(ctx, &u, in.OrganizationID); err != nil {
			return err
		}
		return s.store.addMember(ctx, in.OrganizationID, u.ID, in.Level)
	})
	if err != nil {
		return User{}, err
	}
	return u, nil
}

// user is the checked user, without an id.
func (in NewUser) user() (User, error) {
	email, err := checkEmail(in.Email)
	if err != nil {
		return User{}, err
	}
	name, err := checkFirstName(in.FirstName)
	if err != nil {
		return User{}, err
	}
	return User{UUID: newUUID(), DistinctID: freshKey(""), FirstName: name, Email: email}, nil
}

func checkFirstName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return "", fault.Field("first_name", "invalid_input", "This field must be text.")
	}
	if utf8.RuneCountInString(name) > 150 {
		return "", fault.Field("first_name", "max_length", "Ensure this field has no more than 150 characters.")
	}
	return name, nil
}

func newUUID() string { return uuid.Must(uuid.NewV7()).String() } // fails only when randomness does

// User returns the user with that id, NotFound when there is none.
func (s *Service) User(ctx context.Context, id int64) (User, error) {
	u, _, err := s.store.user(ctx, id)
	return u, err
}

// Users lists all users by id.
func (s *Service) Users(ctx context.Context) ([]User, error) { return s.store.users(ctx) }

// UsersByID returns the given users by id, revoked ones too; ids that nobody
// has are absent.
func (s *Service) UsersByID(ctx context.Context, ids []int64) (map[int64]User, error) {
	users, err := s.store.usersByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]User, len(users))
	for _, u := range users {
		out[u.ID] = u
	}
	return out, nil
}

// UpdateUser changes a user and returns them as they are then. The project to
// work in must belong to an organization they are a member of.
func (s *Service) UpdateUser(ctx context.Context, id int64, c UserChange) (User, error) {
	var u User
	err := s.change(ctx, func(ctx context.Context) (err error) {
		var where workplace
		if u, where, err = s.store.user(ctx, id); err != nil {
			return err
		}
		if err := c.apply(&u); err != nil {
			return err
		}
		if c.CurrentProjectID != nil {
			where.projectID = *c.CurrentProjectID
			if err := s.mayWorkIn(ctx, id, where.projectID); err != nil {
				return err
			}
		}
		return s.store.saveUser(ctx, u, where.projectID)
	})
	if err != nil {
		return User{}, err
	}
	return u, nil
}

func (c UserChange) apply(u *User) (err error) {
	if c.FirstName != nil {
		if u.FirstName, err = checkFirstName(*c.FirstName); err != nil {
			return err
		}
	}
	if c.Email != nil {
		email, err := checkEmail(*c.Email)
		if err != nil {
			return err
		}
		u.IsEmailVerified = u.IsEmailVerified && u.Email == email
		u.Email = email
	}
	return nil
}

func (s *Service) mayWorkIn(ctx context.Context, userID, projectID int64) error {
	const attr, detail = "current_project", "There is no such project."
	p, err := s.store.project(ctx, projectID)
	if err != nil {
		return missing(err, attr, detail)
	}
	_, err = s.store.member(ctx, p.OrganizationID, userID)
	return missing(err, attr, detail)
}

// RevokeUser takes away everything the user can do: their keys are refused.
// What they made stays theirs. The last owner of an organization stays.
func (s *Service) RevokeUser(ctx context.Context, id int64) error {
	return s.change(ctx, func(ctx context.Context) error {
		if err := s.needAnotherOwner(ctx, id, ""); err != nil {
			return err
		}
		return s.store.revokeUser(ctx, id)
	})
}

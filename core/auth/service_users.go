package auth

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
)

// CreateUser creates a user as a member of the organization, who works in it.
func (m *userManager) CreateUser(ctx context.Context, in NewUser) (User, error) {
	u, err := in.user()
	if err != nil {
		return User{}, err
	}
	if in.Level == 0 {
		in.Level = LevelMember
	}
	if err := CheckLevel(in.Level); err != nil {
		return User{}, err
	}
	err = m.change(ctx, func(ctx context.Context) error {
		if err := m.requireOrganization(ctx, in.OrganizationID); err != nil {
			return err
		}
		if err := m.store.addUser(ctx, &u, in.OrganizationID); err != nil {
			return err
		}
		return m.store.addMember(ctx, in.OrganizationID, u.ID, in.Level)
	})
	if err != nil {
		return User{}, err
	}
	return u, nil
}

// user returns the checked user, without an id.
func (in NewUser) user() (User, error) {
	email, err := CheckEmail(in.Email)
	if err != nil {
		return User{}, err
	}
	name, err := CheckFirstName(in.FirstName)
	if err != nil {
		return User{}, err
	}
	return User{UUID: newUUID(), DistinctID: apikey.New(""), FirstName: name, Email: email, Operator: in.Operator}, nil
}

// CheckFirstName returns the name without outer white space, or Invalid for first_name.
func CheckFirstName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return "", fault.Field("first_name", "invalid_input", "This field must be text.")
	}
	if utf8.RuneCountInString(name) > 150 {
		return "", fault.Field("first_name", "max_length", "Ensure this field has no more than 150 characters.")
	}
	return name, nil
}

func newUUID() string { return uuid.Must(uuid.NewV7()).String() } // fails only without randomness

// User returns the user with that id, NotFound when there is none.
func (m *userManager) User(ctx context.Context, id int64) (User, error) {
	u, _, err := m.store.user(ctx, id)
	return u, err
}

// Users lists all users by id.
func (m *userManager) Users(ctx context.Context) ([]User, error) { return m.store.users(ctx) }

// UsersByID returns the given users by id, also revoked ones; unknown ids are
// omitted.
func (m *userManager) UsersByID(ctx context.Context, ids []int64) (map[int64]User, error) {
	users, err := m.store.usersByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]User, len(users))
	for _, u := range users {
		out[u.ID] = u
	}
	return out, nil
}

// UpdateUser changes a user and returns the changed one. The current project must
// belong to an organization of the user.
func (m *userManager) UpdateUser(ctx context.Context, id int64, c UserChange) (User, error) {
	var u User
	err := m.change(ctx, func(ctx context.Context) (err error) {
		var where workplace
		if u, where, err = m.store.user(ctx, id); err != nil {
			return err
		}
		if err := c.apply(&u); err != nil {
			return err
		}
		if c.CurrentProjectID != nil {
			where.projectID = *c.CurrentProjectID
			if err := m.mayWorkIn(ctx, id, where.projectID); err != nil {
				return err
			}
		}
		return m.store.saveUser(ctx, u, where.projectID)
	})
	if err != nil {
		return User{}, err
	}
	return u, nil
}

func (c UserChange) apply(u *User) (err error) {
	if c.FirstName != nil {
		if u.FirstName, err = CheckFirstName(*c.FirstName); err != nil {
			return err
		}
	}
	if c.Email != nil {
		email, err := CheckEmail(*c.Email)
		if err != nil {
			return err
		}
		u.IsEmailVerified = u.IsEmailVerified && u.Email == email
		u.Email = email
	}
	return nil
}

func (m *userManager) mayWorkIn(ctx context.Context, userID, projectID int64) error {
	const attr, detail = "current_project", "There is no such project."
	p, err := m.store.project(ctx, projectID)
	if err != nil {
		return invalidIfMissing(err, attr, detail)
	}
	_, err = m.store.member(ctx, p.OrganizationID, userID)
	return invalidIfMissing(err, attr, detail)
}

// SetOperator grants or revokes the right of a user to administer the server. It
// fails with NotFound for an unknown or revoked user.
func (m *userManager) SetOperator(ctx context.Context, id int64, operator bool) error {
	return m.change(ctx, func(ctx context.Context) error { return m.store.setOperator(ctx, id, operator) })
}

// RevokeUser revokes a user with all keys. Objects that the user created stay. The
// last owner of an organization cannot be revoked.
func (m *userManager) RevokeUser(ctx context.Context, id int64) error {
	return m.change(ctx, func(ctx context.Context) error {
		if err := m.requireAnotherOwner(ctx, id, ""); err != nil {
			return err
		}
		return m.store.revokeUser(ctx, id)
	})
}

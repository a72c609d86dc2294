package accounts

import (
	"context"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// roleMemberView is the JSON form of a membership in a role.
type roleMemberView struct {
	ID        string    `json:"id"`
	RoleID    string    `json:"role_id"`
	User      auth.User `json:"user"`
	JoinedAt  web.Time  `json:"joined_at"`
	UpdatedAt web.Time  `json:"updated_at"`
}

func showRoleMember(m auth.RoleMember) roleMemberView {
	return roleMemberView{ID: m.ID, RoleID: m.RoleID, User: m.User, JoinedAt: web.Time(m.JoinedAt), UpdatedAt: web.Time(m.UpdatedAt)}
}

func (h *HTTP) listRoleMembers(c *web.Call) error {
	r, err := h.auth.Role(c.UserContext(), c.Principal.OrganizationID, c.Params("role_id"))
	return list(c, showRoleMember, r.Members, err)
}

func (h *HTTP) readRoleMember(c *web.Call) error {
	r, err := h.auth.Role(c.UserContext(), c.Principal.OrganizationID, c.Params("role_id"))
	if err != nil {
		return err
	}
	for _, m := range r.Members {
		if strings.EqualFold(m.ID, c.Params("id")) {
			return web.JSON(c.Ctx, showRoleMember(m))
		}
	}
	return errNotFound
}

// addRoleMember adds a user to the role, named by user_uuid, or by the number
// user.
func (h *HTTP) addRoleMember(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	attr, user := userOf(body)
	if err := body.Err(); err != nil {
		return err
	}
	member, err := h.member(c.UserContext(), c.Principal.OrganizationID, user)
	if fault.Is(err, fault.NotFound) {
		return fault.Field(attr, "does_not_exist", "The user is not a member of this organization.")
	}
	if err != nil {
		return err
	}
	var m auth.RoleMember
	err = h.change(c, func(ctx context.Context) (*activity.Event, error) {
		m, err = h.auth.AddRoleMember(ctx, c.Principal.OrganizationID, c.Params("role_id"), member.User.ID)
		return &activity.Event{Scope: activity.RoleMember, ItemID: m.ID, Activity: activity.Created, Name: member.User.Email}, err
	})
	if f := fault.From(err); f != nil && f.Kind == fault.Invalid {
		return f.At(attr)
	}
	if err != nil {
		return err
	}
	return created(c, showRoleMember(m))
}

// userOf returns the user of the body and the name of its field.
func userOf(body *web.Fields) (attr, user string) {
	if body.Has("user") && !body.Has("user_uuid") {
		return "user", strconv.FormatInt(body.Int("user").Value, 10)
	}
	return "user_uuid", body.UUID("user_uuid", web.Required).Value
}

func (h *HTTP) removeRoleMember(c *web.Call) error {
	return noContent(c, h.change(c, func(ctx context.Context) (*activity.Event, error) {
		r, err := h.auth.Role(ctx, c.Principal.OrganizationID, c.Params("role_id"))
		if err != nil {
			return nil, err
		}
		e := &activity.Event{Scope: activity.RoleMember, ItemID: c.Params("id"), Activity: activity.Deleted}
		for _, m := range r.Members {
			if m.ID == e.ItemID {
				e.Name = m.User.Email
			}
		}
		return e, h.auth.RemoveRoleMember(ctx, c.Principal.OrganizationID, r.ID, c.Params("id"))
	}))
}

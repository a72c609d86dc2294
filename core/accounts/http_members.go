package accounts

import (
	"context"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
)

const membersPath = organizationPath + "/members"

func (h *HTTP) memberRoutes(g *web.Router) {
	g.Manage(fiber.MethodGet, membersPath, "organization:read", ownOrganization(h.listMembers))
	g.Manage(fiber.MethodGet, membersPath+"/:user_id", "organization:read", ownOrganization(h.readMember))
	g.Manage(fiber.MethodPatch, membersPath+"/:user_id", "organization:write", ownOrganization(adminsOnly(h.changeMember)))
	g.Manage(fiber.MethodDelete, membersPath+"/:user_id", "organization:write", ownOrganization(h.removeMember))
}

// memberView is the JSON form of a membership in an organization. ID is the UUID of
// the user: a user has one membership in an organization.
type memberView struct {
	ID        string    `json:"id"`
	User      auth.User `json:"user"`
	Level     int       `json:"level"`
	JoinedAt  web.Time  `json:"joined_at"`
	UpdatedAt web.Time  `json:"updated_at"`
}

func showMember(m auth.Member) memberView {
	return memberView{ID: m.User.UUID, User: m.User, Level: m.Level, JoinedAt: web.Time(m.JoinedAt), UpdatedAt: web.Time(m.UpdatedAt)}
}

func (h *HTTP) listMembers(c *web.Call) error {
	all, err := h.auth.Members(c.UserContext(), c.Principal.OrganizationID)
	return list(c, showMember, all, err)
}

func (h *HTTP) readMember(c *web.Call) error {
	m, err := h.member(c.UserContext(), c.Principal.OrganizationID, c.Params("user_id"))
	return answer(c, showMember, m, err)
}

func (h *HTTP) changeMember(c *web.Call) error {
	ctx, org := c.UserContext(), c.Principal.OrganizationID
	m, err := h.member(ctx, org, c.Params("user_id"))
	if err != nil {
		return err
	}
	body, err := c.Fields()
	if err != nil {
		return err
	}
	level := body.Int("level")
	if level.Set && level.Value != auth.LevelMember && level.Value != auth.LevelAdmin && level.Value != auth.LevelOwner {
		body.Fail("level", "invalid_choice", "The level must be 1 (member), 8 (admin) or 15 (owner).")
	}
	if err := body.Err(); err != nil {
		return err
	}
	if level.Set {
		if err := requireRank(c.Principal, m, int(level.Value)); err != nil {
			return err
		}
		err = h.change(c, func(ctx context.Context) (*activity.Event, error) {
			e := memberEvent(m, activity.Updated)
			e.Before, e.After = memberState{m.Level}, memberState{int(level.Value)}
			return e, h.auth.SetMemberLevel(ctx, org, m.User.ID, int(level.Value))
		})
		if err != nil {
			return err
		}
		m, err = h.member(ctx, org, m.User.UUID)
	}
	return answer(c, showMember, m, err)
}

func (h *HTTP) removeMember(c *web.Call) error {
	ctx, org := c.UserContext(), c.Principal.OrganizationID
	m, err := h.member(ctx, org, c.Params("user_id"))
	if err != nil {
		return err
	}
	if err := requireRemoval(c.Principal, m); err != nil {
		return err
	}
	return noContent(c, h.change(c, func(ctx context.Context) (*activity.Event, error) {
		return memberEvent(m, activity.Deleted), h.auth.RemoveMember(ctx, org, m.User.ID)
	}))
}

// member finds a member by the id or the uuid of the user.
func (h *HTTP) member(ctx context.Context, organizationID, user string) (auth.Member, error) {
	all, err := h.auth.Members(ctx, organizationID)
	if err != nil {
		return auth.Member{}, err
	}
	for _, m := range all {
		if strings.EqualFold(m.User.UUID, user) || strconv.FormatInt(m.User.ID, 10) == user {
			return m, nil
		}
	}
	return auth.Member{}, errNotFound
}

package accounts

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// meView is the user of the key, as other resources embed it, with organization
// and project. Team is the name of the project that clients know.
type meView struct {
	auth.User
	IsOperator   bool             `json:"is_operator"` // whether the user may administer the server
	Organization organizationView `json:"organization"`
	Project      *projectView     `json:"project"`
	Team         *projectView     `json:"team"`
}

func (h *HTTP) me(c *web.Call) error { return h.answerMe(c, c.Principal) }

// changeMe changes the user of the key. That user may come from a cache, so the
// answer is made from what was written.
func (h *HTTP) changeMe(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	change := auth.UserChange{
		FirstName:        given(body.String("first_name", web.Blank)),
		Email:            given(body.String("email")),
		CurrentProjectID: given(body.Int("current_project")),
	}
	if err := body.Err(); err != nil {
		return err
	}
	if err := requireOwnAddress(c.Principal, change.Email); err != nil {
		return err
	}
	caller := *c.Principal
	if change.CurrentProjectID != nil {
		caller.CurrentProjectID = *change.CurrentProjectID
		if err := h.requireProject(c.UserContext(), c.Principal, caller.CurrentProjectID); err != nil {
			return err
		}
	}
	err = h.change(c, func(ctx context.Context) (*activity.Event, error) {
		before, err := h.auth.User(ctx, caller.User.ID)
		if err != nil {
			return nil, err
		}
		if caller.User, err = h.auth.UpdateUser(ctx, caller.User.ID, change); err != nil || change.FirstName == nil && change.Email == nil {
			return nil, err
		}
		return &activity.Event{
			Scope: activity.User, ItemID: activity.ItemID(before.ID), Activity: activity.Updated, Name: caller.User.Email,
			Before: userState{before.FirstName, before.Email}, After: userState{caller.User.FirstName, caller.User.Email},
		}, nil
	})
	if err != nil {
		return err
	}
	return h.answerMe(c, &caller)
}

// requireOwnAddress fails for a new address unless the caller is an operator with all scopes:
// who has the address can sign in as the user.
// Addresses are unique on the server: whether one is taken would tell who is a
// member of another organization. The address that the user has may be sent.
func requireOwnAddress(caller *auth.Principal, email *string) error {
	if email == nil || caller.IsOperator() && slices.Contains(caller.Scopes, "*") || strings.EqualFold(strings.TrimSpace(*email), caller.User.Email) {
		return nil
	}
	return fault.New(fault.Forbidden, "permission_denied", "Only operators of this server change email addresses, with all scopes.")
}

// requireProject fails if the key may not see the project: a key that is
// restricted to some projects cannot make its user work in another one.
func (h *HTTP) requireProject(ctx context.Context, caller *auth.Principal, id int64) error {
	_, err := h.auth.ProjectFor(ctx, caller, strconv.FormatInt(id, 10))
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) {
		return fault.Field("current_project", "does_not_exist", "There is no such project.").Because(err)
	}
	return err
}

func (h *HTTP) answerMe(c *web.Call, caller *auth.Principal) error {
	ctx := c.UserContext()
	o, err := h.auth.Organization(ctx, caller.OrganizationID)
	if err != nil {
		return err
	}
	user, err := h.auth.User(ctx, caller.User.ID)
	if err != nil {
		return err
	}
	v := meView{User: user, IsOperator: user.Operator, Organization: showOrganization(caller)(o)}
	p, err := h.auth.ProjectFor(ctx, caller, auth.Current)
	switch {
	case fault.Is(err, fault.NotFound): // an organization without projects
		return web.JSON(c.Ctx, v)
	case err != nil:
		return err
	}
	show, err := h.showProjects(ctx, p)
	if err != nil {
		return err
	}
	project := show(p)
	v.Project, v.Team = &project, &project
	return web.JSON(c.Ctx, v)
}

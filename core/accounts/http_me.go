package accounts

import (
	"context"
	"strconv"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// meView is the user of the key: the user as other resources embed them, and
// where they are. Team is the name by which clients know the project.
type meView struct {
	auth.User
	Organization organizationView `json:"organization"`
	Project      *projectView     `json:"project"`
	Team         *projectView     `json:"team"`
}

func (h *HTTP) me(c *web.Call) error { return h.answerMe(c, c.Principal) }

// changeMe changes what is the user's own. The user of the key may be known
// from memory, so the answer is made of what was just written.
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
	who := *c.Principal
	if change.CurrentProjectID != nil {
		who.CurrentProjectID = *change.CurrentProjectID
		if err := h.needProject(c.UserContext(), c.Principal, who.CurrentProjectID); err != nil {
			return err
		}
	}
	if who.User, err = h.auth.UpdateUser(c.UserContext(), who.User.ID, change); err != nil {
		return err
	}
	return h.answerMe(c, &who)
}

// needProject fails when the key may not see the project: a key that is kept
// to some projects does not decide that its user works in others.
func (h *HTTP) needProject(ctx context.Context, who *auth.Principal, id int64) error {
	_, err := h.auth.ProjectFor(ctx, who, strconv.FormatInt(id, 10))
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) {
		return fault.Field("current_project", "does_not_exist", "There is no such project.").Because(err)
	}
	return err
}

func (h *HTTP) answerMe(c *web.Call, who *auth.Principal) error {
	ctx := c.UserContext()
	o, err := h.auth.Organization(ctx, who.OrganizationID)
	if err != nil {
		return err
	}
	user, err := h.auth.User(ctx, who.User.ID)
	if err != nil {
		return err
	}
	v := meView{User: user, Organization: showOrganization(who)(o)}
	p, err := h.auth.ProjectFor(ctx, who, auth.Current)
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

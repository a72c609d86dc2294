package accounts

import (
	"context"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

// projectKeyView is the JSON form of a project key. RevokedAt is null while the
// key is valid.
type projectKeyView struct {
	ID        int64      `json:"id"`
	Key       string     `json:"key"`
	Label     string     `json:"label"`
	CreatedBy *auth.User `json:"created_by"`
	CreatedAt web.Time   `json:"created_at"`
	RevokedAt web.Time   `json:"revoked_at"`
}

// showProjectKey returns a function from keys to their JSON form.
func showProjectKey(users map[int64]auth.User) func(auth.ProjectKey) projectKeyView {
	return func(k auth.ProjectKey) projectKeyView {
		v := projectKeyView{ID: k.ID, Key: k.Key, Label: k.Label, CreatedAt: web.Time(k.CreatedAt), RevokedAt: web.Time(k.RevokedAt)}
		if u, ok := users[k.CreatedBy]; ok {
			v.CreatedBy = &u
		}
		return v
	}
}

// listProjectKeys lists valid and revoked keys, so that users recognize the key of
// an old client.
func (h *HTTP) listProjectKeys(c *web.Call) error {
	all, err := h.auth.ProjectKeys(c.UserContext(), c.Project.ID)
	if err != nil {
		return err
	}
	var makers []int64
	for _, k := range query.Cut(all, c.Page().Limit, c.Page().Offset) {
		makers = append(makers, k.CreatedBy)
	}
	users, err := h.auth.UsersByID(c.UserContext(), makers)
	return list(c, showProjectKey(users), all, err)
}

func (h *HTTP) createProjectKey(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	in := auth.NewProjectKey{
		ProjectID: c.Project.ID, CreatedBy: c.Principal.User.ID,
		Label: body.String("label", web.Required).Value,
		Key:   body.String("key").Value,
	}
	if err := body.Err(); err != nil {
		return err
	}
	var k auth.ProjectKey
	err = h.change(c, func(ctx context.Context) (*activity.Event, error) {
		k, err = h.auth.CreateProjectKey(ctx, in)
		return projectKeyEvent(c.Project.ID, k, activity.Created), err
	})
	if err != nil {
		return err
	}
	return created(c, showProjectKey(map[int64]auth.User{c.Principal.User.ID: c.Principal.User})(k))
}

func (h *HTTP) revokeProjectKey(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	return noContent(c, h.change(c, func(ctx context.Context) (*activity.Event, error) {
		return projectKeyEvent(c.Project.ID, auth.ProjectKey{ID: id}, activity.Deleted), h.auth.RevokeProjectKey(ctx, c.Project.ID, id)
	}))
}

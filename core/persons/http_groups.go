package persons

import (
	"encoding/json"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/persons/stage"
	"github.com/guidonhq/guidon/core/web"
)

const (
	groupsPath     = "/api/projects/:project_id/groups"
	groupTypesPath = "/api/projects/:project_id/groups_types"
)

func (h *HTTP) groupRoutes(g *web.Router) {
	g.Manage(fiber.MethodGet, groupsPath, "group:read", h.listGroups)
	g.Manage(fiber.MethodGet, groupsPath+"/find", "group:read", h.findGroup)
	g.Manage(fiber.MethodGet, groupsPath+"/related", "group:read", h.related)
	g.Manage(fiber.MethodGet, groupTypesPath, "group:read", h.listTypes)
	g.Manage(fiber.MethodPost, groupTypesPath, "group:write", h.createType)
	g.Manage(fiber.MethodPatch, groupTypesPath+"/:index", "group:write", h.renameType)
	g.Manage(fiber.MethodDelete, groupTypesPath+"/:index", "group:write", h.deleteType)
}

// groupView is the JSON form of a group.
type groupView struct {
	TypeIndex  int             `json:"group_type_index"`
	Key        string          `json:"group_key"`
	Properties json.RawMessage `json:"group_properties"`
	CreatedAt  string          `json:"created_at"`
}

func viewGroup(g *Group) groupView {
	return groupView{TypeIndex: g.TypeIndex, Key: g.Key, Properties: g.Properties, CreatedAt: formatTime(g.CreatedAt)}
}

// typeView is the JSON form of a group type.
type typeView struct {
	Name      string  `json:"group_type"`
	Index     int     `json:"group_type_index"`
	Singular  *string `json:"name_singular"`
	Plural    *string `json:"name_plural"`
	CreatedAt string  `json:"created_at"`
}

func viewType(t *GroupType) typeView {
	return typeView{Name: t.Name, Index: t.Index, Singular: t.Singular, Plural: t.Plural, CreatedAt: formatTime(t.CreatedAt)}
}

func (h *HTTP) listGroups(c *web.Call) error {
	index, err := typeIndex(c)
	if err != nil {
		return err
	}
	page := c.Page()
	found, total, err := h.persons.Groups.Find(c.UserContext(), c.Project.ID, index, c.Query("search"), page.Limit, page.Offset)
	if err != nil {
		return err
	}
	views := make([]groupView, len(found))
	for i := range found {
		views[i] = viewGroup(&found[i])
	}
	return c.List(page, total, views)
}

func (h *HTTP) findGroup(c *web.Call) error {
	index, err := typeIndex(c)
	if err != nil {
		return err
	}
	key := c.Query("group_key")
	if key == "" {
		return fault.Field("group_key", "required", "This field is required.")
	}
	g, err := h.persons.Groups.Get(c.UserContext(), c.Project.ID, index, key)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, viewGroup(&g))
}

// typeIndex reads the index of a group type from the query.
func typeIndex(c *web.Call) (int, error) {
	raw := c.Query("group_type_index")
	if raw == "" {
		return 0, fault.Field("group_type_index", "required", "This field is required.")
	}
	index, err := strconv.Atoi(raw)
	if err != nil {
		return 0, fault.Field("group_type_index", "invalid_input", "A valid integer is required.")
	}
	return index, nil
}

// listTypes answers a list without pages: a project has few types.
func (h *HTTP) listTypes(c *web.Call) error {
	types, err := h.persons.Groups.ListTypes(c.UserContext(), c.Project.ID)
	if err != nil {
		return err
	}
	views := make([]typeView, len(types))
	for i := range types {
		views[i] = viewType(&types[i])
	}
	return web.JSON(c.Ctx, views)
}

func (h *HTTP) createType(c *web.Call) error {
	f, err := c.Fields()
	if err != nil {
		return err
	}
	name := f.String("group_type", web.Required, web.Max(stage.MaxTypeName/4))
	singular := f.String("name_singular", web.Nullable, web.Blank, web.Max(stage.MaxTypeName))
	plural := f.String("name_plural", web.Nullable, web.Blank, web.Max(stage.MaxTypeName))
	if err := f.Err(); err != nil {
		return err
	}
	t, err := h.persons.Groups.CreateType(c.UserContext(), c.Project.ID, name.Value, sent(singular), sent(plural))
	if err != nil {
		return err
	}
	c.Status(fiber.StatusCreated)
	return web.JSON(c.Ctx, viewType(&t))
}

func (h *HTTP) renameType(c *web.Call) error {
	index, err := strconv.Atoi(c.Params("index"))
	if err != nil {
		return errNoGroup
	}
	f, err := c.Fields()
	if err != nil {
		return err
	}
	name := f.String("group_type", web.Max(stage.MaxTypeName/4))
	singular := f.String("name_singular", web.Nullable, web.Blank, web.Max(stage.MaxTypeName))
	plural := f.String("name_plural", web.Nullable, web.Blank, web.Max(stage.MaxTypeName))
	if err := f.Err(); err != nil {
		return err
	}
	t, err := h.persons.Groups.RenameType(c.UserContext(), c.Project.ID, index, sent(name), sent(singular), sent(plural))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, viewType(&t))
}

// sent returns the value of a field that was sent; null is the empty text.
func sent(o web.Opt[string]) *string {
	if !o.Set {
		return nil
	}
	return &o.Value
}

func (h *HTTP) deleteType(c *web.Call) error {
	index, err := strconv.Atoi(c.Params("index"))
	if err != nil {
		return errNoGroup
	}
	if err := h.persons.Groups.DeleteType(c.UserContext(), c.Project.ID, index); err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

package definitions

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

// HTTP serves definitions and their annotations.
type HTTP struct{ definitions *Service }

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes of s.
func NewHTTP(s *Service) *HTTP { return &HTTP{s} }

const (
	eventsPath     = "/api/projects/:project_id/event_definitions"
	propertiesPath = "/api/projects/:project_id/property_definitions"
)

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	const eventRead, eventWrite = "event_definition:read", "event_definition:write"
	g.Manage(fiber.MethodGet, eventsPath, eventRead, h.listEvents)
	g.Manage(fiber.MethodGet, eventsPath+"/by_name", eventRead, h.eventByName)
	g.Manage(fiber.MethodGet, eventsPath+"/:id", eventRead, h.read(h.definitions.EventByID))
	g.Manage(fiber.MethodPatch, eventsPath+"/:id", eventWrite, h.change(h.definitions.EventByID))
	g.Manage(fiber.MethodDelete, eventsPath+"/:id", eventWrite, h.remove(h.definitions.EventByID))
	const propertyRead, propertyWrite = "property_definition:read", "property_definition:write"
	g.Manage(fiber.MethodGet, propertiesPath, propertyRead, h.listProperties)
	g.Manage(fiber.MethodGet, propertiesPath+"/:id", propertyRead, h.read(h.definitions.PropertyByID))
	g.Manage(fiber.MethodPatch, propertiesPath+"/:id", propertyWrite, h.change(h.definitions.PropertyByID))
	g.Manage(fiber.MethodDelete, propertiesPath+"/:id", propertyWrite, h.remove(h.definitions.PropertyByID))
}

func (h *HTTP) listEvents(c *web.Call) error {
	f := Filter{Kind: Event, Search: c.Query("search")}
	custom := c.Query("event_type")
	switch custom {
	case "event_custom", "event_posthog":
		system := custom == "event_posthog"
		f.System = &system
	}
	return h.list(c, f)
}

func (h *HTTP) listProperties(c *web.Call) error {
	f := Filter{Search: c.Query("search")}
	switch c.Query("type", "event") {
	case "event":
		f.Kind = EventProperty
	case "person":
		f.Kind = PersonProperty
	case "group":
		f.Kind = GroupProperty
		index, err := strconv.Atoi(c.Query("group_type_index"))
		if err != nil {
			return fault.Field("group_type_index", "required", "This field is required for properties of groups.")
		}
		f.GroupIndex = &index
	case "session":
		return c.List(c.Page(), 0, []any{})
	default:
		return fault.Fieldf("type", "invalid_choice", "\"%s\" is not a valid choice: event, person, group or session.", c.Query("type"))
	}
	var err error
	if f.Names, err = namesParam(c, "properties"); err == nil {
		f.Without, err = namesParam(c, "excluded_properties")
	}
	if err != nil {
		return err
	}
	if f.Numeric, err = query.OptionalBool(c, "is_numerical"); err == nil {
		f.Flags, err = query.OptionalBool(c, "is_feature_flag")
	}
	if err != nil {
		return err
	}
	if t := c.Query("property_type"); t != "" {
		f.Types = strings.Split(t, ",")
	}
	hide, err := query.Bool(c, "exclude_core_properties")
	if err != nil {
		return err
	}
	if hide {
		f.System = new(bool)
	}
	return h.list(c, f)
}

var orders = map[string]Order{
	"name": ByName, "last_seen_at": ByLastSeen, "created_at": ByCreated, "verified": ByVerified, "property_type": ByType,
}

func (h *HTTP) list(c *web.Call, f Filter) error {
	var err error
	if f.Verified, err = query.OptionalBool(c, "verified"); err != nil {
		return err
	}
	hide, err := query.Bool(c, "exclude_hidden")
	if err != nil {
		return err
	}
	if hide {
		f.Hidden = new(bool)
	}
	by, descending := strings.CutPrefix(c.Query("ordering", "name"), "-")
	order, ok := orders[by]
	if !ok {
		return fault.Fieldf("ordering", "invalid_choice", "Lists cannot be ordered by %q.", by)
	}
	f.Order, f.Descending = order, descending
	page := c.Page()
	list, count, err := h.definitions.Find(c.UserContext(), c.Project.ID, f, page.Limit, page.Offset)
	if err != nil {
		return err
	}
	views, err := h.views(c.UserContext(), list...)
	if err != nil {
		return err
	}
	return c.List(page, count, views)
}

// namesParam reads comma-separated names, or a JSON list.
func namesParam(c *web.Call, name string) ([]string, error) {
	raw := c.Query(name)
	if raw == "" {
		return nil, nil
	}
	if raw[0] != '[' {
		return strings.Split(strings.Clone(raw), ","), nil
	}
	var out []string
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		return nil, fault.Field(name, "invalid_input", "Not a JSON list of names.")
	}
	return out, nil
}

func (h *HTTP) eventByName(c *web.Call) error {
	name := c.Query("name")
	if name == "" {
		return fault.Field("name", "required", "This field is required.")
	}
	d, err := h.definitions.EventByName(c.UserContext(), c.Project.ID, name)
	if err != nil {
		return err
	}
	return h.answer(c, d)
}

// findFunc reads the definition of a path.
type findFunc func(ctx context.Context, projectID int64, id string) (Definition, error)

func (h *HTTP) read(find findFunc) func(c *web.Call) error {
	return func(c *web.Call) error {
		d, err := find(c.UserContext(), c.Project.ID, c.Params("id"))
		if err != nil {
			return err
		}
		return h.answer(c, d)
	}
}

const (
	maxDescription = 4000
	maxTags        = 100
	maxTag         = 255
)

func (h *HTTP) change(find findFunc) func(c *web.Call) error {
	return func(c *web.Call) error {
		d, err := find(c.UserContext(), c.Project.ID, c.Params("id"))
		if err != nil {
			return err
		}
		change, err := readChange(c, &d)
		if err != nil {
			return err
		}
		if d, err = h.definitions.Annotate(c.UserContext(), d, c.Principal.User.ID, change); err != nil {
			return err
		}
		return h.answer(c, d)
	}
}

func readChange(c *web.Call, d *Definition) (out Change, err error) {
	f, err := c.Fields()
	if err != nil {
		return out, err
	}
	description := f.String("description", web.Nullable, web.Blank, web.Max(maxDescription))
	tags := f.Strings("tags", web.Nullable)
	hidden, verified := f.Bool("hidden", web.Nullable), f.Bool("verified", web.Nullable)
	kind := f.String("property_type", web.Nullable, web.Blank)
	out.Description, out.Hidden, out.Verified = ifSet(description), ifSet(hidden), ifSet(verified)
	if tags.Set {
		list := normalizeTags(f, tags.Value)
		out.Tags = &list
	}
	if kind.Set && d.Kind != Event {
		if kind.Value != "" && !isType(kind.Value) {
			f.Fail("property_type", "invalid_choice", "A property is String, Numeric, Boolean or DateTime.")
		}
		out.PropertyType = &kind.Value
	}
	if out.Hidden != nil && *out.Hidden && out.Verified != nil && *out.Verified {
		f.Fail("hidden", "invalid_input", "A definition cannot be both hidden and verified.")
	}
	return out, f.Err()
}

// normalizeTags trims, lowercases and deduplicates tags.
func normalizeTags(f *web.Fields, raw []string) []string {
	out, seen := make([]string, 0, len(raw)), make(map[string]bool, len(raw))
	for _, tag := range raw {
		tag = strings.ToLower(strings.TrimSpace(tag))
		if len(tag) > maxTag {
			f.Fail("tags", "max_length", "A tag has at most 255 bytes.")
		}
		if tag != "" && !seen[tag] {
			seen[tag] = true
			out = append(out, tag)
		}
	}
	if len(out) > maxTags {
		f.Fail("tags", "max_length", "A definition has at most 100 tags.")
	}
	return out
}

func ifSet[T any](o web.Opt[T]) *T {
	if !o.Set {
		return nil
	}
	return &o.Value
}

func (h *HTTP) remove(find findFunc) func(c *web.Call) error {
	return func(c *web.Call) error {
		d, err := find(c.UserContext(), c.Project.ID, c.Params("id"))
		if err != nil {
			return err
		}
		if err := h.definitions.Remove(c.UserContext(), c.Project.ID, d); err != nil {
			return err
		}
		return web.Empty(c.Ctx, fiber.StatusNoContent)
	}
}

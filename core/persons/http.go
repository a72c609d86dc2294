package persons

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

// HTTP serves persons and groups to users of their project.
type HTTP struct {
	persons   *Service
	audit     *activity.Audit
	events    LastSeen
	relations Relations
}

// LastSeen reads when persons were last seen. core/events implements it.
type LastSeen interface {
	// LastSeen returns the newest timestamp of the events of each distinct id that
	// has any.
	LastSeen(ctx context.Context, projectID int64, distinctIDs []string) (map[string]time.Time, error)
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes of s. audit may be nil: deletions then have no entries in
// the activity log. Nil events leave last_seen_at null.
func NewHTTP(s *Service, audit *activity.Audit, events LastSeen, relations Relations) *HTTP {
	return &HTTP{s, audit, events, relations}
}

const personsPath = "/api/projects/:project_id/persons"

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, personsPath, "person:read", h.list)
	g.Manage(fiber.MethodGet, personsPath+"/:id", "person:read", h.get)
	g.Manage(fiber.MethodDelete, personsPath+"/:id", "person:write", h.delete)
	g.Manage(fiber.MethodPost, personsPath+"/:id/split", "person:write", h.split)
	h.groupRoutes(g)
}

// View is the JSON form of a person.
type View struct {
	ID           int64           `json:"id"`
	UUID         string          `json:"uuid"`
	Name         string          `json:"name"`
	DistinctIDs  []string        `json:"distinct_ids"`
	Properties   json.RawMessage `json:"properties"`
	CreatedAt    string          `json:"created_at"`
	IsIdentified bool            `json:"is_identified"`
	LastSeenAt   web.Time        `json:"last_seen_at"`
}

// Views returns the JSON form of persons of the project of the call. The caller
// checks that the key may read persons.
func (h *HTTP) Views(c *web.Call, list []Person) ([]View, error) {
	var ids []string
	for i := range list {
		ids = append(ids, list[i].DistinctIDs...)
	}
	var seen map[string]time.Time
	if h.events != nil && len(ids) > 0 {
		var err error
		if seen, err = h.events.LastSeen(c.UserContext(), c.Project.ID, ids); err != nil {
			return nil, err
		}
	}
	views := make([]View, len(list))
	for i := range list {
		views[i] = viewPerson(&list[i])
		last := time.Time{}
		for _, id := range list[i].DistinctIDs {
			if t := seen[id]; t.After(last) {
				last = t
			}
		}
		views[i].LastSeenAt = web.Time(last)
	}
	return views, nil
}

func viewPerson(p *Person) View {
	return View{
		ID: p.ID, UUID: p.UUID, Name: p.Name(), DistinctIDs: p.DistinctIDs, Properties: p.Properties,
		CreatedAt: formatTime(p.CreatedAt), IsIdentified: p.IsIdentified,
	}
}

// formatTime formats the time of an event for an answer. It is never null: a
// client may send the zero time.
func formatTime(t time.Time) string { return t.UTC().Format(web.TimeLayout) }

func (h *HTTP) list(c *web.Call) error {
	q := Query{DistinctID: c.Query("distinct_id"), Search: c.Query("search")}
	var err error
	if q.Properties, err = filters(c.Query("properties"), c.Project.Location()); err != nil {
		return err
	}
	if err := readFilters(c, &q); err != nil {
		return err
	}
	if c.HasQuery("cursor") {
		return h.search(c, q)
	}
	page := c.Page()
	found, total, err := h.persons.Find(c.UserContext(), c.Project.ID, q, page.Limit, page.Offset)
	if err != nil {
		return err
	}
	views, err := h.Views(c, found)
	if err != nil {
		return err
	}
	return c.List(page, total, views)
}

// readFilters reads the parameters email and is_identified. An empty email is Invalid:
// a caller without an address must not get all persons.
func readFilters(c *web.Call, q *Query) error {
	var err error
	if q.Identified, err = query.OptionalBool(c, "is_identified"); err != nil {
		return err
	}
	if !c.HasQuery("email") {
		return nil
	}
	email := strings.Clone(c.Query("email"))
	if email == "" {
		return fault.Field("email", "blank", "This field may not be blank.")
	}
	filter, err := json.Marshal([]map[string]string{{"key": "email", "type": "person", "operator": "exact", "value": email}})
	if err != nil {
		return err
	}
	exact, err := filters(string(filter), nil)
	q.Properties = append(q.Properties, exact...)
	q.email = email // an index has the few persons that the filter reads
	return err
}

// filters parses a JSON list of property filters.
func filters(raw string, location *time.Location) ([]*match.Filter, error) {
	items, err := propertyfilter.Compile(raw, match.Options{Location: location}, "person")
	if err != nil {
		return nil, err
	}
	out := make([]*match.Filter, len(items))
	for i := range items {
		out[i] = items[i].Filter
	}
	return out, nil
}

func (h *HTTP) get(c *web.Call) error {
	p, err := h.persons.Get(c.UserContext(), c.Project.ID, c.Params("id"))
	if err != nil {
		return err
	}
	views, err := h.Views(c, []Person{p})
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, views[0])
}

// delete deletes a person, and with delete_events=true also its events.
func (h *HTTP) delete(c *web.Call) error {
	events, err := query.Bool(c, "delete_events")
	if err != nil {
		return err
	}
	p, err := h.persons.Get(c.UserContext(), c.Project.ID, c.Params("id"))
	if err != nil {
		return err
	}
	// The entry names the number of the person, and nothing that leads to a distinct id.
	ctx := h.audit.Attach(c.UserContext(), c.Principal, &activity.Event{
		Scope: activity.Person, ItemID: activity.ItemID(p.ID), Activity: activity.Deleted, ProjectID: c.Project.ID,
		After: struct {
			Events bool `json:"delete_events"`
		}{events},
	})
	if err := h.persons.Delete(ctx, c.Project.ID, c.Params("id"), events); err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

func (h *HTTP) split(c *web.Call) error {
	f, err := c.Fields()
	if err != nil {
		return err
	}
	main := f.String("main_distinct_id", web.Nullable, web.Untrimmed).Or("")
	if err := f.Err(); err != nil {
		return err
	}
	if err := h.persons.Split(c.UserContext(), c.Project.ID, c.Params("id"), main); err != nil {
		return err
	}
	c.Status(fiber.StatusCreated)
	return web.JSON(c.Ctx, map[string]bool{"success": true})
}

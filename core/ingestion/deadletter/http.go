package deadletter

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

// replayWait bounds how long a request waits for its replays.
const replayWait = 10 * time.Second

// HTTP serves the dead letters of a project.
type HTTP struct{ service *Service }

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the handler.
func NewHTTP(s *Service) *HTTP { return &HTTP{s} }

// Routes registers the paths.
func (h *HTTP) Routes(g *web.Router) {
	const read, write = "event:read", "event:write"
	const list, one = "/api/projects/:project_id/dead_letters", "/api/projects/:project_id/dead_letters/:id"
	g.Manage(fiber.MethodGet, list, read, h.list)
	g.Manage(fiber.MethodPost, list+"/replay", write, h.replayMany)
	g.Manage(fiber.MethodPost, list+"/delete", write, h.deleteMany)
	g.Manage(fiber.MethodGet, one, read, h.get)
	g.Manage(fiber.MethodPatch, one, write, h.edit)
	g.Manage(fiber.MethodDelete, one, write, h.discard)
	g.Manage(fiber.MethodPost, one+"/replay", write, h.replayOne)
}

func (h *HTTP) list(c *web.Call) error {
	f, err := filterOfQuery(c)
	if err != nil {
		return err
	}
	page := c.Page()
	entries, count, err := h.service.List(c.UserContext(), c.Project.ID, f, page.Limit, page.Offset)
	if err != nil {
		return err
	}
	return c.List(page, count, entries)
}

// filterOfQuery reads the filter of a list from the query.
func filterOfQuery(c *web.Call) (f Filter, err error) {
	f = Filter{
		Source: c.Query("source"), Event: c.Query("event"), EventUUID: c.Query("event_uuid"),
		DistinctID: c.Query("distinct_id"), Code: c.Query("code"), Search: c.Query("search"),
	}
	if sink := c.Query("sink"); sink != "" {
		f.Source = SourceSink + sink
	}
	for _, bound := range []struct {
		name string
		to   *time.Time
	}{{"after", &f.After}, {"before", &f.Before}} {
		text := c.Query(bound.name)
		if text == "" {
			continue
		}
		at, ok := event.ParseTime(text)
		if !ok {
			return f, fault.Field(bound.name, "invalid_input", "Give a time, such as 2024-05-01T10:00:00Z.")
		}
		*bound.to = at
	}
	f.Waiting, err = query.OptionalBool(c, "replay_waiting")
	return f, err
}

// bulkBody is the body of a request that acts on many dead letters.
type bulkBody struct {
	Filter
	dryRun, all bool
}

// filterOfBody reads a bulkBody strictly: a misspelt filter must not select
// everything.
func filterOfBody(c *web.Call) (body bulkBody, err error) {
	b, err := c.Fields()
	if err != nil {
		return body, err
	}
	body.Filter = Filter{
		IDs: b.Ints("ids").Value, Source: b.String("source").Value, Event: b.String("event").Value,
		EventUUID: b.String("event_uuid").Value, DistinctID: b.String("distinct_id").Value, Code: b.String("code").Value,
		Search: b.String("search").Value, After: b.Time("after").Value, Before: b.Time("before").Value,
	}
	if sink := b.String("sink"); sink.Set {
		body.Source = SourceSink + sink.Value
	}
	if waiting := b.Bool("replay_waiting"); waiting.Set {
		body.Waiting = &waiting.Value
	}
	body.dryRun, body.all = b.Bool("dry_run").Value, b.Bool("all").Value
	known := []string{"ids", "source", "sink", "event", "event_uuid", "distinct_id", "code", "search", "after", "before", "replay_waiting", "dry_run", "all"}
	for _, name := range b.Names() {
		if !slices.Contains(known, name) {
			b.Fail(name, "unknown_field", "There is no filter of this name.")
		}
	}
	if b.Has("ids") && len(body.IDs) == 0 {
		b.Fail("ids", "empty", "This list may not be empty.")
	}
	return body, b.Err()
}

// idOf returns the id in the path.
func idOf(c *web.Call) (int64, error) {
	id, err := strconv.ParseInt(c.Params("id"), 10, 64)
	if err != nil {
		return 0, errNotFound
	}
	return id, nil
}

func (h *HTTP) get(c *web.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	e, err := h.service.Get(c.UserContext(), c.Project.ID, id)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, e)
}

func (h *HTTP) discard(c *web.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	if err := h.service.Discard(c.UserContext(), c.Project.ID, id); err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

// deleteMany deletes the dead letters that the body selects. Without a filter it
// requires all.
func (h *HTTP) deleteMany(c *web.Call) error {
	b, err := filterOfBody(c)
	if err != nil {
		return err
	}
	if b.Everything() && !b.all && !b.dryRun {
		return fault.Field("all", "required", "Without a filter everything would be deleted: say so with all.")
	}
	if b.dryRun {
		web.MarkLogged(c.UserContext())
	}
	out, err := h.service.Delete(c.UserContext(), c.Project.ID, b.Filter, b.dryRun)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, out)
}

// edit changes the event of a dead letter.
func (h *HTTP) edit(c *web.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	f, err := c.Fields()
	if err != nil {
		return err
	}
	e, err := h.service.Edit(c.UserContext(), c.Project.ID, id, objectOf(f))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, e)
}

// objectOf returns the fields of a body as a JSON object.
func objectOf(f *web.Fields) []byte {
	out := []byte{'{'}
	for i, name := range f.Names() {
		if i > 0 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(name) // cannot fail
		out = append(append(out, quoted...), ':')
		out = append(out, f.Raw(name)...)
	}
	return append(out, '}')
}

// replayOne requests the replay of one dead letter.
func (h *HTTP) replayOne(c *web.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	if _, err := h.service.Get(c.UserContext(), c.Project.ID, id); err != nil {
		return err
	}
	return h.replay(c, Filter{IDs: []int64{id}}, false)
}

// replayMany requests the replay of the dead letters that the body selects; with
// dry_run it only lists them.
func (h *HTTP) replayMany(c *web.Call) error {
	b, err := filterOfBody(c)
	if err != nil {
		return err
	}
	return h.replay(c, b.Filter, b.dryRun)
}

func (h *HTTP) replay(c *web.Call, f Filter, dryRun bool) error {
	if dryRun {
		web.MarkLogged(c.UserContext())
	}
	out, err := h.service.Replay(c.UserContext(), c.Project.ID, f, dryRun, replayWait)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, out)
}

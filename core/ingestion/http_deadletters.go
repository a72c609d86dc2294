package ingestion

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/web"
)

// replayWait is how long a request waits for its replays.
const replayWait = 10 * time.Second

func (h *ManageHTTP) letters(c *web.Call) error {
	f, err := letterQuery(c)
	if err != nil {
		return err
	}
	page := c.Page()
	letters, count, err := h.dead.List(c.UserContext(), c.Project.ID, f, page.Limit, page.Offset)
	if err != nil {
		return err
	}
	return c.List(page, count, letters)
}

// letterQuery reads the filter of a list of dead letters from the query.
func letterQuery(c *web.Call) (f LetterFilter, err error) {
	f = LetterFilter{
		Source: c.Query("source"), Event: c.Query("event"), EventUUID: c.Query("event_uuid"),
		DistinctID: c.Query("distinct_id"), Code: c.Query("code"), Search: c.Query("search"),
	}
	if sink := c.Query("sink"); sink != "" {
		f.Source = sourceSink + sink
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
	return f, nil
}

// letterBody is the filter of something that is done to many dead letters.
type letterBody struct {
	LetterFilter
	dryRun, all bool
}

// letterBodyOf reads it strictly: a filter with a typing error must not become
// one that lets everything through.
func letterBodyOf(c *web.Call) (body letterBody, err error) {
	b, err := c.Fields()
	if err != nil {
		return body, err
	}
	body.LetterFilter = LetterFilter{
		IDs: b.Ints("ids").Value, Source: b.String("source").Value, Event: b.String("event").Value,
		EventUUID: b.String("event_uuid").Value, DistinctID: b.String("distinct_id").Value, Code: b.String("code").Value,
		Search: b.String("search").Value, After: b.Time("after").Value, Before: b.Time("before").Value,
	}
	if sink := b.String("sink"); sink.Set {
		body.Source = sourceSink + sink.Value
	}
	body.dryRun, body.all = b.Bool("dry_run").Value, b.Bool("all").Value
	known := []string{"ids", "source", "sink", "event", "event_uuid", "distinct_id", "code", "search", "after", "before", "dry_run", "all"}
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

// letterID returns the id in the path.
func letterID(c *web.Call) (int64, error) {
	id, err := strconv.ParseInt(c.Params("id"), 10, 64)
	if err != nil {
		return 0, errNoLetter
	}
	return id, nil
}

func (h *ManageHTTP) letter(c *web.Call) error {
	id, err := letterID(c)
	if err != nil {
		return err
	}
	l, err := h.dead.Get(c.UserContext(), c.Project.ID, id)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, l)
}

func (h *ManageHTTP) discard(c *web.Call) error {
	id, err := letterID(c)
	if err != nil {
		return err
	}
	if err := h.dead.Discard(c.UserContext(), c.Project.ID, id); err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

// discardMany throws the dead letters away that match the body. To throw all
// away takes the word all.
func (h *ManageHTTP) discardMany(c *web.Call) error {
	b, err := letterBodyOf(c)
	if err != nil {
		return err
	}
	if b.Everything() && !b.all && !b.dryRun {
		return fault.Field("all", "required", "Without a filter everything would be deleted: say so with all.")
	}
	out, err := h.dead.Delete(c.UserContext(), c.Project.ID, b.LetterFilter, b.dryRun)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, out)
}

// edit changes the event that would be replayed.
func (h *ManageHTTP) edit(c *web.Call) error {
	id, err := letterID(c)
	if err != nil {
		return err
	}
	f, err := c.Fields()
	if err != nil {
		return err
	}
	l, err := h.dead.Edit(c.UserContext(), c.Project.ID, id, objectOf(f))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, l)
}

// objectOf puts the fields of a body together again.
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

// replayOne sends one dead letter again.
func (h *ManageHTTP) replayOne(c *web.Call) error {
	id, err := letterID(c)
	if err != nil {
		return err
	}
	if _, err := h.dead.Get(c.UserContext(), c.Project.ID, id); err != nil {
		return err
	}
	return h.replay(c, LetterFilter{IDs: []int64{id}}, false)
}

// replayMany sends the dead letters that match the body again, or with dry_run
// tells which those are.
func (h *ManageHTTP) replayMany(c *web.Call) error {
	b, err := letterBodyOf(c)
	if err != nil {
		return err
	}
	return h.replay(c, b.LetterFilter, b.dryRun)
}

func (h *ManageHTTP) replay(c *web.Call, f LetterFilter, dryRun bool) error {
	out, err := h.dead.Replay(c.UserContext(), c.Project.ID, f, dryRun, replayWait)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, out)
}

package ingestion

import (
	"context"
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/sdk"
)

// replayTimeout is how long a request waits for sinks and stages.
const replayTimeout = 20 * time.Second

func (h *ManageHTTP) letters(c *web.Call) error {
	f, err := letterFilter(c)
	if err != nil {
		return err
	}
	page := c.Page()
	letters, count, err := h.store.letters(c.UserContext(), c.Project.ID, f, page.Limit, page.Offset)
	if err != nil {
		return err
	}
	return c.List(page, count, letters)
}

// letterFilter reads the filter of a list of dead letters from the query.
func letterFilter(c *web.Call) (f LetterFilter, err error) {
	f = LetterFilter{
		Source: c.Query("source"), Event: c.Query("event"), EventUUID: c.Query("event_uuid"),
		DistinctID: c.Query("distinct_id"), Code: c.Query("code"),
	}
	for name, t := range map[string]*time.Time{"after": &f.After, "before": &f.Before} {
		text := c.Query(name)
		if text == "" {
			continue
		}
		at, ok := parseTime(text)
		if !ok {
			return f, fault.Field(name, "invalid_input", "Give a time, such as 2024-05-01T10:00:00Z.")
		}
		*t = at
	}
	return f, nil
}

// find returns the dead letter the path names.
func (h *ManageHTTP) find(c *web.Call) (DeadLetter, error) {
	id, err := c.ParamsInt("id")
	if err != nil {
		return DeadLetter{}, errNoLetter
	}
	return h.store.letter(c.UserContext(), c.Project.ID, int64(id))
}

func (h *ManageHTTP) letter(c *web.Call) error {
	l, err := h.find(c)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, l)
}

func (h *ManageHTTP) discard(c *web.Call) error {
	l, err := h.find(c)
	if err != nil {
		return err
	}
	if err := h.store.dropLetter(c.UserContext(), l.ProjectID, l.ID); err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

// edit changes the event that would be replayed. Its uuid, its project and when
// it was received stay as they are.
func (h *ManageHTTP) edit(c *web.Call) error {
	l, err := h.find(c)
	if err != nil {
		return err
	}
	var ev sdk.Event
	if err := json.Unmarshal(l.Payload, &ev); err != nil {
		return fault.New(fault.Conflict, "not_an_event", "This dead letter holds no event that could be edited.").Because(err)
	}
	f, err := c.Fields()
	if err != nil {
		return err
	}
	if o := f.String("event", web.Max(maxChars)); o.Set {
		ev.Name = o.Value
	}
	if o := f.String("distinct_id", web.Max(maxChars)); o.Set {
		ev.DistinctID = o.Value
	}
	if o := f.Time("timestamp"); o.Set {
		ev.Timestamp = o.Value
	}
	if o := f.Object("properties"); o.Set {
		ev.Properties = appendClean(nil, o.Value)
	}
	if err := f.Err(); err != nil {
		return err
	}
	l.Event, l.DistinctID, l.Payload = ev.Name, ev.DistinctID, ev.AppendJSON(nil)
	if err := h.store.editLetter(c.UserContext(), &l); err != nil {
		return err
	}
	return web.JSON(c.Ctx, l)
}

// replayOne sends one dead letter again.
func (h *ManageHTTP) replayOne(c *web.Call) error {
	l, err := h.find(c)
	if err != nil {
		return err
	}
	return h.replay(c, LetterFilter{IDs: []int64{l.ID}}, false)
}

// replayMany sends the dead letters that match the body again, or with dry_run
// counts them.
func (h *ManageHTTP) replayMany(c *web.Call) error {
	b, err := c.Fields()
	if err != nil {
		return err
	}
	f := LetterFilter{
		IDs: b.Ints("ids").Value, Source: b.String("source").Value, Event: b.String("event").Value,
		EventUUID: b.String("event_uuid").Value, DistinctID: b.String("distinct_id").Value, Code: b.String("code").Value,
		After: b.Time("after").Value, Before: b.Time("before").Value,
	}
	dryRun := b.Bool("dry_run").Value
	if err := b.Err(); err != nil {
		return err
	}
	return h.replay(c, f, dryRun)
}

func (h *ManageHTTP) replay(c *web.Call, f LetterFilter, dryRun bool) error {
	ctx, cancel := context.WithTimeout(c.UserContext(), replayTimeout)
	defer cancel()
	out, err := h.replayer.Replay(ctx, c.Project.ID, f, dryRun)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, out)
}

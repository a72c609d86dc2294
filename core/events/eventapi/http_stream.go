package eventapi

import (
	"context"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/auth/keyusage"
	"github.com/guidonhq/guidon/core/events/tail"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/stream"
)

const streamScope = "event:read"

// streamState, the bounds of streams, is the answer for a client that does not ask for a stream.
type streamState struct {
	MaxViewers int `json:"max_viewers"`
	MaxRate    int `json:"max_rate"`
}

// stream opens a stream of the events that arrive, or answers its bounds as JSON.
func (h *HTTP) stream(c *web.Call) error {
	f, err := filterOf(c)
	if err != nil {
		return err
	}
	// The filter outlives the request, whose memory is used again.
	f.Event, f.DistinctID, f.PersonID = strings.Clone(f.Event), strings.Clone(f.DistinctID), strings.Clone(f.PersonID)
	last, err := lastRow(c)
	if err != nil {
		return err
	}
	if c.Method() != "GET" || !strings.Contains(c.Get("Accept"), "text/event-stream") {
		return web.JSON(c.Ctx, streamState{h.tail.Limit(), tail.MaxRate})
	}
	place, err := h.tail.Reserve(c.Project.ID)
	if err != nil {
		return err
	}
	check := c.Recheck(streamScope)
	// A check is not a use: a session whose page is only open becomes idle.
	unrecorded := func(ctx context.Context) error { return check(keyusage.Unrecorded(ctx)) }
	err = stream.Open(c.Context(), place.Opener(tail.Request{Project: c.Project.ID, Filter: f, LastRow: last, Check: unrecorded}))
	if err != nil {
		place.Release()
	}
	return err
}

// lastRow reads the id of the last message that the client has seen, -1 without one.
func lastRow(c *web.Call) (int64, error) {
	id := c.Get("Last-Event-ID", c.Query("last_event_id"))
	if id == "" {
		return -1, nil
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 0 {
		return 0, fault.Field("last_event_id", "invalid_input", "Invalid last event id.")
	}
	return n, nil
}

package changes

import (
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/changes/changelog"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/listener"
	"github.com/guidonhq/guidon/core/web/stream"
)

// HTTP serves the streams.
type HTTP struct {
	hub    *Hub
	router *web.Router
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the paths over hub.
func NewHTTP(hub *Hub) *HTTP { return &HTTP{hub: hub} }

// PathPublic is the path of the public stream. It takes the project key as query
// parameter token, because browsers cannot add headers to a stream.
const PathPublic = "/flags/changes"

// Routes registers the paths.
func (h *HTTP) Routes(g *web.Router) {
	h.router = g
	h.hub.LimitStreams(g.MaxConnections() / 2)
	g.Public(fiber.MethodGet, PathPublic, h.public)
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/changes", "feature_flag:read", h.details)
}

// public opens the stream for project keys, or answers the revision as JSON.
func (h *HTTP) public(c *fiber.Ctx) error {
	project, err := h.router.ProjectOf(c, keyOf(c), c.Query("project_id"))
	if err != nil {
		return err
	}
	if wantsStream(c) {
		return h.open(c, project.ID, public)
	}
	head, err := h.hub.Head(c.UserContext(), project.ID)
	if err != nil {
		return err
	}
	return web.JSON(c, struct {
		Revision int64 `json:"revision"`
	}{head.Revision})
}

// wantsStream reports whether the client asks for events rather than for JSON.
func wantsStream(c *fiber.Ctx) bool {
	return c.Method() == fiber.MethodGet && strings.Contains(c.Get(fiber.HeaderAccept), "text/event-stream")
}

// keyOf returns the key of the request: of the query, the Authorization header or
// X-API-Key.
func keyOf(c *fiber.Ctx) string {
	if key := c.Query("token"); key != "" {
		return key
	}
	if h := c.Get(fiber.HeaderAuthorization); len(h) > 7 && strings.EqualFold(h[:7], "bearer ") {
		return strings.TrimSpace(h[7:])
	}
	return strings.TrimSpace(c.Get("X-API-Key"))
}

// details opens the stream for personal keys, or lists changes as JSON. Changes of
// actions need their scope.
func (h *HTTP) details(c *web.Call) error {
	a := seesFlags
	if c.Principal.RequireScope("action:read") == nil {
		a |= seesActions
	}
	if wantsStream(c.Ctx) {
		return h.open(c.Ctx, c.Project.ID, a)
	}
	return h.list(c, a)
}

// list answers the changes since a revision.
func (h *HTTP) list(c *web.Call, a audience) error {
	since, err := revisionIn("since", c.Query("since", "0"))
	if err != nil {
		return err
	}
	head, err := h.hub.Head(c.UserContext(), c.Project.ID)
	if err != nil {
		return err
	}
	b, err := h.hub.read(c.UserContext(), c.Project.ID, since, head)
	if err != nil {
		return err
	}
	out := append([]byte(`{"revision":`), strconv.FormatInt(b.head.Revision, 10)...)
	out = strconv.AppendBool(append(out, `,"complete":`...), b.complete)
	out = append(out, `,"results":[`...)
	first := true
	for i := range b.changes {
		if !a.sees(b.changes[i].Kind) {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = appendJSON(out, &b.changes[i])
	}
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	c.Response().SetBodyRaw(append(out, "]}"...))
	return nil
}

// revisionIn reads a revision.
func revisionIn(name, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fault.Field(name, "invalid_input", "A revision is a number from 0.")
	}
	return n, nil
}

// Bounds of the random times of a stream: until a reconnect, and until its end,
// after which the client authenticates again.
const (
	minRetry, maxRetry = time.Second, 10 * time.Second
	minAge, maxAge     = 30 * time.Minute, time.Hour
)

func between(least, most time.Duration) time.Duration { return least + rand.N(most-least) }

// open opens a stream. A client that reconnects names the last event that it has
// seen; an id that is not a revision counts as one that is too old.
func (h *HTTP) open(c *fiber.Ctx, project int64, a audience) error {
	client := listener.Client(h.router.IP(c))
	t, err := h.hub.reserve(project, client)
	if err != nil {
		return err
	}
	head, err := h.hub.headOf(c.UserContext(), t)
	if err == nil {
		err = stream.Open(c.Context(), h.opener(t, client, a, startOf(c, head)))
	}
	if err != nil {
		h.hub.release(t, client)
	}
	return err
}

// startOf returns the revision that the client has: that of its last event, else
// the current one.
func startOf(c *fiber.Ctx, head changelog.Head) int64 {
	id := c.Get("Last-Event-ID", c.Query("last_event_id"))
	if id == "" {
		return head.Revision
	}
	n, err := revisionIn("", strings.Clone(id))
	if err != nil {
		return 0
	}
	return n
}

func (h *HTTP) opener(t *topic, client netip.Addr, a audience, revision int64) func(*stream.Stream) func() {
	return func(st *stream.Stream) func() {
		s := &subscriber{
			stream: st, audience: a, revision: revision,
			slot: uint8(rand.IntN(256)), until: time.Now().Add(between(minAge, maxAge)),
		}
		st.Write(appendHello(nil, between(minRetry, maxRetry), revision))
		h.hub.add(t, s)
		return func() {
			h.hub.remove(t, s)
			h.hub.release(t, client)
		}
	}
}

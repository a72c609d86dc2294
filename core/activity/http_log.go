package activity

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity/chain"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/admins"
)

// HTTP serves the log.
type HTTP struct {
	log   *Log
	chain *chain.Chain
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes of a log.
func NewHTTP(l *Log, c *chain.Chain) *HTTP { return &HTTP{l, c} }

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, "/api/projects/:project_id/activity_log", "activity_log:read", h.ofProject)
	g.Admin(fiber.MethodGet, "/api/activity_log/head", "activity_log:read", h.head)
	g.Manage(fiber.MethodGet, "/api/organizations/:organization_id/activity_log", "activity_log:read", admins.Require("Only admins read the activity log of an organization, with a key for all projects.", h.ofOrganization))
}

// logView is an entry in the answers of HTTP: with the origin of the change.
type logView struct {
	entryView
	UserID         *int64 `json:"user_id"`
	ProjectID      *int64 `json:"project_id"`
	OrganizationID string `json:"organization_id"`
	KeyID          *int64 `json:"personal_api_key_id"`
	Client         string `json:"client_address"`
	UserAgent      string `json:"user_agent"`
	RequestID      string `json:"request_id"`
	Sequence       *int64 `json:"sequence"` // null until the entry is sealed
	Hash           string `json:"hash"`
}

func showEntry(e *Entry) logView {
	return logView{
		entryView: viewOf(e), UserID: positive(e.UserID), ProjectID: positive(e.ProjectID), OrganizationID: e.OrganizationID,
		KeyID: positive(e.KeyID), Client: e.Client, UserAgent: e.UserAgent, RequestID: e.RequestID, Sequence: positive(e.Sequence), Hash: e.Hash,
	}
}

func positive(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func (h *HTTP) ofProject(c *web.Call) error { return h.answer(c, Query{ProjectID: c.Project.ID}) }

// ofOrganization answers admins of the organization. It covers all projects, so a
// key that is restricted to some does not read it. Operators also read what belongs to
// the server.
func (h *HTTP) ofOrganization(c *web.Call) error {
	return h.answer(c, Query{OrganizationID: c.Principal.OrganizationID, Server: c.Principal.IsOperator()})
}

func (h *HTTP) answer(c *web.Call, q Query) error {
	q.Scope, q.ItemID = Scope(c.Query("scope")), c.Query("item_id")
	q.Activity, q.Client = c.Query("activity"), c.Query("client_address")
	for scope := range strings.SplitSeq(c.Query("scopes"), ",") {
		if scope != "" {
			q.Scopes = append(q.Scopes, Scope(scope))
		}
	}
	for name, to := range map[string]*int64{"user": &q.UserID, "personal_api_key_id": &q.KeyID} {
		if err := idQuery(c, name, to); err != nil {
			return err
		}
	}
	for name, to := range map[string]*time.Time{"start_date": &q.After, "end_date": &q.Before} {
		if err := timeQuery(c, name, to); err != nil {
			return err
		}
	}
	return answer(c, func(ctx context.Context, limit, offset int) ([]Entry, int, error) {
		q.Limit, q.Offset = limit, offset
		return h.log.Find(ctx, q)
	}, showEntry)
}

// head answers operators with the newest entry of the chain: an anchor.
func (h *HTTP) head(c *web.Call) error {
	if !c.Principal.IsOperator() || c.Principal.IsRestricted() {
		return fault.New(fault.Forbidden, "permission_denied", "Only operators of this server may do this.")
	}
	head, err := h.chain.Head(c.UserContext())
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, head)
}

// idQuery reads an id of the query, if it is there.
func idQuery(c *web.Call, name string, to *int64) error {
	text := c.Query(name)
	if text == "" {
		return nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return fault.Field(name, "invalid_input", "A valid integer is required.")
	}
	*to = id
	return nil
}

// timeQuery reads a time or a day of the query, if it is there.
func timeQuery(c *web.Call, name string, to *time.Time) error {
	text := c.Query(name)
	if text == "" {
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			*to = at
			return nil
		}
	}
	return fault.Field(name, "invalid_input", "Give a time, such as 2026-05-01T10:00:00Z, or a day, such as 2026-05-01.")
}

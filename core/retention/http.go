package retention

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves the rules of a project.
type HTTP struct {
	service *Service
	audit   *activity.Audit
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes of s. audit may be nil.
func NewHTTP(s *Service, audit *activity.Audit) *HTTP { return &HTTP{s, audit} }

const basePath = "/api/projects/:project_id/retention"

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	g.Manage(fiber.MethodGet, basePath, "project:read", h.read)
	g.Manage(fiber.MethodPatch, basePath, "project:write", h.change)
	g.Manage(fiber.MethodPost, basePath+"/preview", "project:read", h.preview)
}

// rulesView is the JSON form of rules; null is the setting of the server.
type rulesView struct {
	Keep   *string           `json:"keep"`
	Events map[string]string `json:"events"`
}

func showRules(r Rules) rulesView {
	v := rulesView{Events: make(map[string]string, len(r.Events))}
	if r.Keep != nil {
		text := FormatAge(*r.Keep)
		v.Keep = &text
	}
	for name, d := range r.Events {
		v.Events[name] = FormatAge(d)
	}
	return v
}

type runView struct {
	StartedAt     web.Time `json:"started_at"`
	FinishedAt    web.Time `json:"finished_at"`
	DeletedBefore web.Time `json:"deleted_before"`
	DeletedEvents int64    `json:"deleted_events"`
}

type stateView struct {
	rulesView
	ServerKeep  string   `json:"server_keep"`
	OldestEvent web.Time `json:"oldest_event"`
	LastRun     *runView `json:"last_run"`
}

func (h *HTTP) read(c *web.Call) error {
	r, err := h.service.Rules(c.UserContext(), c.Project.ID)
	if err != nil {
		return err
	}
	return h.answer(c, r)
}

func (h *HTTP) answer(c *web.Call, r Rules) error {
	v := stateView{rulesView: showRules(r), ServerKeep: FormatAge(h.service.setting)}
	at, ok, err := h.service.events.Oldest(c.UserContext(), c.Project.ID, "", time.Time{})
	if err != nil {
		return err
	}
	if ok {
		v.OldestEvent = web.Time(at)
	}
	run, err := h.service.store.run(c.UserContext(), c.Project.ID)
	if err != nil {
		return err
	}
	if run != nil {
		v.LastRun = &runView{web.Time(run.StartedAt.Time), web.Time(run.FinishedAt.Time), web.Time(run.ToAt.Time), run.Deleted}
	}
	return web.JSON(c.Ctx, v)
}

// body returns the rules r with the changes of the request: null removes a rule, and
// fields and events that are not sent stay.
func body(c *web.Call, r Rules) (Rules, error) {
	f, err := c.Fields()
	if err != nil {
		return r, err
	}
	f.RequireKnown()
	keep, names := f.Any("keep", web.Nullable), f.Object("events")
	if err := f.Err(); err != nil {
		return r, err
	}
	if f.Has("keep") {
		if r.Keep, err = parseJSON(keep.Value); err != nil {
			return r, fault.From(err).At("keep")
		}
	}
	if !names.Set {
		return r, nil
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(names.Value, &sent); err != nil {
		return r, fault.Field("events", "invalid_input", "Not an object of ages by event name.")
	}
	if r.Events = maps.Clone(r.Events); r.Events == nil {
		r.Events = map[string]time.Duration{}
	}
	for name, raw := range sent {
		d, err := parseJSON(raw)
		switch {
		case name == "" || len(name) > maxName:
			return r, fault.Fieldf("events", "invalid_input", "The name of an event has 1 to %d bytes.", maxName)
		case strings.ContainsRune(name, 0):
			return r, fault.Field("events", "null_characters_not_allowed", "Null characters are not allowed.")
		case err != nil:
			return r, fault.From(err).At("events__" + name)
		case d == nil:
			delete(r.Events, name)
		default:
			r.Events[name] = *d
		}
	}
	return r, nil
}

// maxName is the longest name of an event in a rule, in bytes.
const maxName = 800

func requireAdmin(p *auth.Principal) error {
	if p.IsAdmin() {
		return nil
	}
	return fault.New(fault.Forbidden, "permission_denied", "Only admins and owners of the organization may do this.")
}

// ruleState is the state of a project in the activity log.
type ruleState struct {
	Retention rulesView `json:"retention"`
}

func (h *HTTP) change(c *web.Call) error {
	if err := requireAdmin(c.Principal); err != nil {
		return err
	}
	var after Rules
	err := h.audit.Change(c.UserContext(), c.Principal, func(ctx context.Context) (*activity.Event, error) {
		before, err := h.service.Rules(ctx, c.Project.ID)
		if err != nil {
			return nil, err
		}
		if after, err = body(c, before); err != nil {
			return nil, err
		}
		return &activity.Event{
			Scope: activity.Project, ItemID: activity.ItemID(c.Project.ID), Activity: activity.Updated, Name: c.Project.Name, ProjectID: c.Project.ID,
			Before: ruleState{showRules(before)}, After: ruleState{showRules(after)},
		}, h.service.SetRules(ctx, c.Project.ID, after)
	})
	if err != nil {
		return err
	}
	return h.answer(c, after)
}

type previewView struct {
	Events     int64     `json:"events"`
	OldestKept web.Time  `json:"oldest_kept"`
	Rules      rulesView `json:"rules"`
}

// preview answers with what a change would delete now. An empty body asks about the
// present rules.
func (h *HTTP) preview(c *web.Call) error {
	r, err := h.service.Rules(c.UserContext(), c.Project.ID)
	if err != nil {
		return err
	}
	if r, err = body(c, r); err != nil {
		return err
	}
	p, err := h.service.Preview(c.UserContext(), c.Project.ID, r)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, previewView{p.Events, web.Time(p.OldestKept), showRules(r)})
}

package schedule

import (
	"encoding/json"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves scheduled changes under /api/projects/:project_id/scheduled_changes.
type HTTP struct{ service *Service }

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the endpoints over service.
func NewHTTP(service *Service) *HTTP { return &HTTP{service} }

const basePath = "/api/projects/:project_id/scheduled_changes"

// modelFlag is the only kind of object that changes are scheduled for.
const modelFlag = "FeatureFlag"

// Routes registers the endpoints.
func (h *HTTP) Routes(r *web.Router) {
	r.Manage("GET", basePath, "feature_flag:read", h.list)
	r.Manage("POST", basePath, "feature_flag:write", h.create)
	r.Manage("GET", basePath+"/:id", "feature_flag:read", h.retrieve)
	r.Manage("DELETE", basePath+"/:id", "feature_flag:write", h.delete)
}

// view is the JSON form of a change.
type view struct {
	ID            int64           `json:"id"`
	TeamID        int64           `json:"team_id"` // the project
	RecordID      string          `json:"record_id"`
	ModelName     string          `json:"model_name"`
	Payload       json.RawMessage `json:"payload"`
	ScheduledAt   web.Time        `json:"scheduled_at"`
	ExecutedAt    web.Time        `json:"executed_at"`
	FailureReason *string         `json:"failure_reason"`
	CreatedAt     web.Time        `json:"created_at"`
	CreatedBy     *auth.User      `json:"created_by"`
	UpdatedAt     web.Time        `json:"updated_at"`
}

func (h *HTTP) views(c *web.Call, list ...Change) ([]view, error) {
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].CreatedBy
	}
	users, err := h.service.accounts.UsersByID(c.UserContext(), ids)
	if err != nil {
		return nil, err
	}
	out := make([]view, len(list))
	for i := range list {
		ch := &list[i]
		out[i] = view{
			ID: ch.ID, TeamID: ch.ProjectID, RecordID: strconv.FormatInt(ch.FlagID, 10), ModelName: modelFlag, Payload: sealed.Redact(ch.Payload),
			ScheduledAt: web.Time(ch.ScheduledAt), ExecutedAt: web.Time(ch.ExecutedAt), CreatedAt: web.Time(ch.CreatedAt), UpdatedAt: web.Time(ch.UpdatedAt),
		}
		if ch.FailureReason != "" {
			out[i].FailureReason = &ch.FailureReason
		}
		if u, ok := users[ch.CreatedBy]; ok {
			out[i].CreatedBy = &u
		}
	}
	return out, nil
}

func (h *HTTP) list(c *web.Call) error {
	page := c.Page()
	var flagID int64
	if text := c.Query("record_id"); text != "" {
		var err error
		if flagID, err = strconv.ParseInt(text, 10, 64); err != nil || flagID < 1 {
			return fault.Field("record_id", "invalid_input", "A valid integer is required.")
		}
	}
	if model := c.Query("model_name"); model != "" && model != modelFlag {
		return c.List(page, 0, nil)
	}
	list, total, err := h.service.store.list(c.UserContext(), c.Project.ID, flagID, page.Limit, page.Offset)
	if err != nil {
		return err
	}
	views, err := h.views(c, list...)
	if err != nil {
		return err
	}
	return c.List(page, total, views)
}

func (h *HTTP) create(c *web.Call) error {
	body, err := c.Fields()
	if err != nil {
		return err
	}
	flagID := body.Int("record_id", web.Required, web.Min(1)).Value
	body.String("model_name", web.Required, web.OneOf(modelFlag))
	payload := body.Object("payload", web.Required).Value
	at := body.Time("scheduled_at", web.Required).Value
	if err := body.Err(); err != nil {
		return err
	}
	made, err := h.service.Create(c.UserContext(), c.Principal, c.Project, flagID, payload, at)
	if fault.Is(err, fault.NotFound) {
		return fault.Field("record_id", "does_not_exist", "Feature flag not found.")
	}
	if err != nil {
		return err
	}
	c.Status(fiber.StatusCreated)
	return h.answer(c, made)
}

func (h *HTTP) retrieve(c *web.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	found, err := h.service.store.get(c.UserContext(), c.Project.ID, id)
	if err != nil {
		return err
	}
	return h.answer(c, found)
}

func (h *HTTP) delete(c *web.Call) error {
	id, err := idOf(c)
	if err != nil {
		return err
	}
	if err := h.service.Delete(c.UserContext(), c.Principal, c.Project, id); err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

func (h *HTTP) answer(c *web.Call, ch Change) error {
	views, err := h.views(c, ch)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, views[0])
}

// idOf reads the id of a change from the path. Other texts are NotFound.
func idOf(c *web.Call) (int64, error) {
	id, err := strconv.ParseInt(c.Params("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, errNotFound
	}
	return id, nil
}

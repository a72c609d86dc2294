package notifications

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/sdk"
)

// HTTP serves deliveries, retries, message previews and test messages.
type HTTP struct{ service *Service }

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes over service.
func NewHTTP(service *Service) *HTTP { return &HTTP{service} }

const actionsPath = "/api/projects/:project_id/actions"

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	const read, write = "action:read", "action:write"
	g.Manage(fiber.MethodGet, actionsPath+"/notifiers", read, h.notifiers)
	g.Manage(fiber.MethodPost, actionsPath+"/preview_message", read, h.preview)
	g.Manage(fiber.MethodGet, actionsPath+"/:id/deliveries", read, h.list)
	g.Manage(fiber.MethodGet, actionsPath+"/:id/deliveries/:delivery_id", read, h.get)
	g.Manage(fiber.MethodPost, actionsPath+"/:id/deliveries/:delivery_id/retry", write, h.retry)
	g.Manage(fiber.MethodPost, actionsPath+"/:id/test_notification", write, h.test)
}

// deliveryView is a delivery in answers.
type deliveryView struct {
	ID          int64    `json:"id"`
	ActionID    int64    `json:"action_id"`
	Notifier    string   `json:"notifier"`
	Destination string   `json:"destination"`
	EventUUID   string   `json:"event_uuid"`
	Text        string   `json:"text"`
	TextHidden  bool     `json:"text_hidden,omitempty"`
	Suppressed  int64    `json:"suppressed"`
	State       State    `json:"state"`
	Attempts    int64    `json:"attempts"`
	NextAt      web.Time `json:"next_at"`
	CreatedAt   web.Time `json:"created_at"`
	ExpiresAt   web.Time `json:"expires_at"`
	SettledAt   web.Time `json:"settled_at"`
	MessageID   string   `json:"message_id"`
	ErrorCode   string   `json:"error_code"`
	Error       string   `json:"error"`
}

func show(d *Delivery) deliveryView {
	v := deliveryView{
		ID: d.ID, ActionID: d.ActionID, Notifier: d.Notifier, Destination: d.Destination, EventUUID: d.EventUUID, Text: d.Text,
		Suppressed: d.Suppressed, State: d.State, Attempts: d.Attempts, CreatedAt: web.Time(d.CreatedAt), ExpiresAt: web.Time(d.ExpiresAt), SettledAt: web.OptionalTime(d.SettledAt),
		MessageID: d.MessageID, ErrorCode: d.ErrorCode, Error: d.Error,
	}
	if d.State != Waiting {
		return v
	}
	v.NextAt = web.Time(d.NextAt)
	if d.LeasedUntil.After(d.NextAt) { // an attempt is under way
		v.NextAt = web.Time(d.LeasedUntil)
	}
	return v
}

// readsEvents reports whether the key may read events and persons, whose values
// are in the texts of messages.
func readsEvents(c *web.Call) bool {
	return c.Principal.HasScope("event:read") && c.Principal.HasScope("person:read")
}

// show returns the form of d in the answer to c: the text only for keys that may
// read what it contains.
func (h *HTTP) show(c *web.Call, d *Delivery) deliveryView {
	v := show(d)
	if !readsEvents(c) {
		v.Text, v.TextHidden = "", true
	}
	return v
}

func idOf(c *web.Call, name string) (int64, error) {
	id, err := strconv.ParseInt(c.Params(name), 10, 64)
	if err != nil || id < 1 {
		return 0, errNotFound
	}
	return id, nil
}

func (h *HTTP) list(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	if _, err := h.service.deps.Actions.Action(c.UserContext(), c.Project.ID, id); err != nil {
		return err
	}
	state := State(c.Query("state"))
	switch state {
	case "", Waiting, Delivered, Failed, Expired:
	default:
		return fault.Field("state", "invalid_choice", "A state is waiting, delivered, failed or expired.")
	}
	page := c.Page()
	list, total, err := h.service.store.list(c.UserContext(), c.Project.ID, id, state, page.Limit, page.Offset)
	if err != nil {
		return err
	}
	views := make([]deliveryView, len(list))
	for i := range list {
		views[i] = h.show(c, &list[i])
	}
	return c.List(page, total, views)
}

func (h *HTTP) find(c *web.Call) (Delivery, error) {
	action, err := idOf(c, "id")
	if err != nil {
		return Delivery{}, err
	}
	id, err := idOf(c, "delivery_id")
	if err != nil {
		return Delivery{}, err
	}
	return h.service.store.get(c.UserContext(), c.Project.ID, action, id)
}

func (h *HTTP) get(c *web.Call) error {
	d, err := h.find(c)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, h.show(c, &d))
}

// retry queues a message again that has failed, has expired or still waits.
func (h *HTTP) retry(c *web.Call) error {
	d, err := h.find(c)
	if err != nil {
		return err
	}
	if d.State == Delivered {
		return fault.New(fault.Conflict, "delivered", "This message was delivered.")
	}
	posts, err := h.service.isPosting(c.UserContext(), d.ProjectID, d.ActionID)
	if err != nil {
		return err
	}
	if !posts {
		return fault.New(fault.Conflict, "action_off", "The action is deleted or does not post any more.")
	}
	now := h.service.clock()
	d.State, d.Attempts, d.NextAt, d.SettledAt, d.ErrorCode, d.Error = Waiting, 0, now, nil, "", ""
	if err := h.service.store.requeue(c.UserContext(), &d, now.Add(h.service.live.Load().ExpireAfter)); err != nil {
		return err
	}
	h.service.wake()
	if d, err = h.find(c); err != nil {
		return err
	}
	return web.JSON(c.Ctx, h.show(c, &d))
}

// sampleEvent is the event of previews without a matching stored event.
func sampleEvent(projectID int64, now time.Time) *sdk.Event {
	return &sdk.Event{
		UUID: uuid.NewString(), ProjectID: projectID, Name: "sample event", DistinctID: "sample-person", Timestamp: now, ReceivedAt: now,
		Properties: json.RawMessage(`{"$current_url":"https://example.com/","$browser":"Chrome"}`),
	}
}

type segmentView struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
	Href  string `json:"href,omitempty"`
}

type previewView struct {
	Text     string        `json:"text"`
	Segments []segmentView `json:"segments"`
	// Rendered is nil if the request names no notifier.
	Rendered *renderedView `json:"rendered"`
}

// preview renders a format for a sample event, and with the name of a notifier the
// message that it would send.
func (h *HTTP) preview(c *web.Call) error {
	f, err := c.Fields()
	if err != nil {
		return err
	}
	format := f.String("chat_message_format", web.Nullable, web.Blank, web.Untrimmed, web.Max(1200)).Value
	if older := f.String("slack_message_format", web.Nullable, web.Blank, web.Untrimmed, web.Max(1200)); format == "" {
		format = older.Value
	}
	name := f.String("name", web.Nullable, web.Blank, web.Max(400)).Or("Sample action")
	id := f.Int("id", web.Nullable).Value
	to := actions.Destination{Notifier: f.String("notifier", web.Nullable, web.Max(63)).Value, To: f.String("to", web.Nullable, web.Blank, web.Max(2048)).Value}
	if err := f.Err(); err != nil {
		return err
	}
	if err := h.service.CheckFormat(format); err != nil {
		return err
	}
	a := &actions.Action{ID: id, Name: name, Format: format}
	if !readsEvents(c) {
		id = 0
	}
	m := h.service.composer.compose(c.UserContext(), h.project(c), h.sample(c.UserContext(), c.Project.ID, id), a, "", true)
	v := previewView{Text: m.Text, Segments: []segmentView{}}
	for _, s := range m.Segments {
		v.Segments = append(v.Segments, segmentView{s.Kind.String(), s.Value, s.Href})
	}
	if to.Notifier != "" {
		v.Rendered = h.service.render(c.UserContext(), m, to)
	}
	return web.JSON(c.Ctx, v)
}

func (h *HTTP) project(c *web.Call) sdk.ProjectRef {
	return sdk.ProjectRef{ID: c.Project.ID, Name: c.Project.Name, URL: h.service.projectURL(c.Project.ID)}
}

// sample is the latest event that fits the action, or a made-up one.
func (h *HTTP) sample(ctx context.Context, projectID, actionID int64) *sdk.Event {
	if actionID > 0 {
		if ev, err := h.service.deps.Actions.LatestMatch(ctx, projectID, actionID); err == nil && ev != nil {
			return ev
		}
	}
	return sampleEvent(projectID, h.service.clock())
}

// testView is the result of a test message.
type testView struct {
	Notifier    string `json:"notifier"`
	Destination string `json:"destination"`
	Outcome     string `json:"outcome"` // delivered, retry, dropped
	Text        string `json:"text"`
	MessageID   string `json:"message_id"`
	ErrorCode   string `json:"error_code"`
	Error       string `json:"error"`
}

// testTimeout bounds a test.
const testTimeout = 20 * time.Second

// test sends one message about a sample event to each destination of the
// action, or to the one in the body, and returns the results. Rates and quiet
// hours do not apply.
func (h *HTTP) test(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	a, err := h.service.deps.Actions.Action(c.UserContext(), c.Project.ID, id)
	if err != nil {
		return err
	}
	f, err := c.Fields()
	if err != nil {
		return err
	}
	notifier, to := f.String("notifier", web.Nullable, web.Max(63)), f.String("to", web.Nullable, web.Blank, web.Max(2048))
	if err := f.Err(); err != nil {
		return err
	}
	if to.Value != "" && notifier.Value == "" {
		return fault.Field("notifier", "required", "Say which notifier leads there.")
	}
	targets := h.service.destinations(a)
	if notifier.Set && !notifier.Null {
		targets = []actions.Destination{{Notifier: notifier.Value, To: to.Value}}
	}
	if len(targets) == 0 {
		return fault.New(fault.Invalid, "no_notifier", "There is no notifier in the config of the server.")
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), testTimeout)
	defer cancel()
	sampled := id
	if !readsEvents(c) {
		sampled = 0
	}
	ev := h.sample(ctx, c.Project.ID, sampled)
	results, project := make([]testView, len(targets)), h.project(c)
	var trying sync.WaitGroup
	for i, d := range targets {
		trying.Go(func() { results[i] = h.service.try(ctx, project, a, d, ev) })
	}
	trying.Wait()
	return web.JSON(c.Ctx, map[string]any{"results": results})
}

// testNotification returns the message m as a notifier gets it.
func (s *Service) testNotification(m Message, to string) (*sdk.Notification, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	now := s.clock()
	one := Delivery{Key: "test-" + uuid.NewString(), Destination: to, Message: raw, CreatedAt: now, ExpiresAt: now.Add(testTimeout)}
	return one.notification()
}

// try sends one test message.
func (s *Service) try(ctx context.Context, project sdk.ProjectRef, a *actions.Action, d actions.Destination, ev *sdk.Event) testView {
	v := testView{Notifier: d.Notifier, Destination: d.To, Outcome: "retry"}
	m := s.composer.compose(ctx, project, ev, a, d.Format, true)
	v.Text = m.Text
	n := s.find(d.Notifier)
	switch {
	case n == nil:
		v.Outcome, v.ErrorCode, v.Error = "dropped", "unknown_notifier", "There is no notifier of this name in the config of the server."
		return v
	case !n.Available():
		v.ErrorCode, v.Error = "plugin_unavailable", "The notifier does not run."
		return v
	}
	msg, err := s.testNotification(m, d.To)
	if err != nil {
		v.Outcome, v.Error = "dropped", err.Error()
		return v
	}
	results, err := n.Notify(ctx, []*sdk.Notification{msg})
	if err != nil || len(results) != 1 {
		e := sdk.AsError(err)
		if e == nil {
			e = &sdk.Error{Code: "contract_breach", Message: "The notifier did not answer for the message."}
		}
		v.ErrorCode, v.Error = e.Code, e.Message
		return v
	}
	v.Outcome, v.MessageID = results[0].Outcome.String(), results[0].MessageID
	if e := results[0].Err; e != nil {
		v.ErrorCode, v.Error = e.Code, e.Message
	}
	return v
}

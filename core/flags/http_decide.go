package flags

import (
	"strconv"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// Quota tells which projects may not ask for flags any more.
type Quota interface {
	FlagsExhausted(projectID int64) bool
}

// DecideHTTP serves what clients ask to know which flags are on, in the forms
// of all their versions, and the explanation of it for people.
type DecideHTTP struct {
	decider *Decider
	quota   Quota
	gate    *web.Gate
	head    []byte // what comes before the flags in an answer with config
	tail    []byte // what comes after them
	remote  []byte // the rest of the remote config
}

var _ web.Routes = (*DecideHTTP)(nil)

// NewDecideHTTP returns the paths over d. quota may be nil.
func NewDecideHTTP(d *Decider, quota Quota) *DecideHTTP {
	h := &DecideHTTP{decider: d, quota: quota}
	h.prepareConfig(d.cfg)
	return h
}

// Routes registers the paths.
func (h *DecideHTTP) Routes(g *web.Gate) {
	h.gate = g
	g.Public(fiber.MethodPost, "/decide", h.decide)
	g.Public(fiber.MethodGet, "/decide", h.decide)
	g.Public(fiber.MethodPost, "/flags", h.flags)
	g.Public(fiber.MethodGet, "/flags", h.flags)
	g.Public(fiber.MethodHead, "/flags", func(*fiber.Ctx) error { return nil })
	g.Public(fiber.MethodOptions, "/flags", allowFlags)
	g.Public(fiber.MethodGet, "/array/:token/config", h.config)
	g.Public(fiber.MethodGet, "/array/:token/config.js", h.configScript)
	g.Manage(fiber.MethodPost, "/api/projects/:project_id/feature_flags/explain", "feature_flag:read", h.explainAll)
	g.Manage(fiber.MethodPost, "/api/projects/:project_id/feature_flags/:id/explain", "feature_flag:read", h.explain)
}

func allowFlags(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAllow, "GET, HEAD, POST, OPTIONS")
	return web.Empty(c, fiber.StatusNoContent)
}

// decideShape reads ?v= of /decide. Of several the last one counts.
func decideShape(c *fiber.Ctx) (shape form, withConfig bool) {
	v, given, _ := queryOf(c)
	version, err := strconv.Atoi(v)
	switch {
	case !given || v == "":
		return formKeys, true
	case err != nil || version == 2:
		return formOn, true
	case version == 3:
		return formValues, true
	case version > 3:
		return formDetails, true
	}
	return formKeys, true
}

// flagsShape reads ?v= and ?config= of /flags. Its first version is the third
// one of /decide.
func flagsShape(c *fiber.Ctx) (shape form, withConfig bool) {
	v, given, config := queryOf(c)
	if !given && config == "" {
		return formDetails, true
	}
	if version, err := strconv.Atoi(v); err == nil && version > 1 {
		return formDetails, truth(config)
	}
	return formValues, true
}

func queryOf(c *fiber.Ctx) (v string, given bool, config string) {
	for name, value := range c.Context().QueryArgs().All() {
		switch string(name) {
		case "v":
			v, given = strings.TrimSpace(textView(value)), true
		case "config":
			config = textView(value)
		}
	}
	return v, given, config
}

func truth(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "t", "yes", "y", "on":
		return true
	}
	return false
}

func (h *DecideHTTP) decide(c *fiber.Ctx) error {
	shape, withConfig := decideShape(c)
	return h.serve(c, shape, withConfig)
}

func (h *DecideHTTP) flags(c *fiber.Ctx) error {
	shape, withConfig := flagsShape(c)
	return h.serve(c, shape, withConfig)
}

// call is one request on its way through; calls are reused.
type call struct {
	parser fastjson.Parser
	asked  asked
	out    []byte
}

var calls = sync.Pool{New: func() any { return newCall() }}

func newCall() *call {
	c := &call{}
	c.asked.visit = c.asked.field
	c.asked.visitGroup = c.asked.group
	c.asked.visitGroupProperties = c.asked.groupProperties
	return c
}

func (h *DecideHTTP) serve(c *fiber.Ctx, shape form, withConfig bool) error {
	if c.Method() == fiber.MethodGet && !c.Context().QueryArgs().Has("data") {
		return h.minimal(c, shape)
	}
	k := calls.Get().(*call)
	defer calls.Put(k)
	project, err := h.read(c, k)
	if err != nil {
		return err
	}
	h.begin(k, withConfig)
	switch over := h.quota != nil && h.quota.FlagsExhausted(project); {
	case k.asked.disabled:
		k.out = appendNoFlags(k.out, shape)
	case k.asked.distinctID == "":
		return fault.New(fault.Invalid, "missing_distinct_id", "Decide requires a distinct_id.")
	case over:
		k.out = append(appendNoFlags(k.out, shape), `"quotaLimited":["feature_flags"],`...)
	default:
		h.answer(c, k, project, shape)
	}
	return h.finish(c, k, withConfig)
}

// read takes the request apart and finds its project.
func (h *DecideHTTP) read(c *fiber.Ctx, k *call) (int64, error) {
	limits := h.gate.Limits()
	limits.Malformed = "malformed_data"
	k.asked.reset()
	p, err := web.Body(c, limits)
	if f := fault.From(err); f != nil && f.Code == "no_data" {
		return h.readNothing(c)
	}
	if err != nil {
		return 0, err
	}
	v, err := k.parser.ParseBytes(p.JSON)
	if err == nil && v.Type() == fastjson.TypeArray {
		v = v.Get("0")
	}
	if err != nil || v == nil || v.Type() != fastjson.TypeObject {
		return 0, fault.New(fault.Malformed, "malformed_data", "Malformed request data: it must be a JSON object.").Because(err)
	}
	project, err := h.gate.Admit(c, p, v)
	if err != nil {
		return 0, err
	}
	v.GetObject().Visit(k.asked.visit)
	return project.ID, nil
}

// readNothing is for requests without a body: only the key may be there.
func (h *DecideHTTP) readNothing(c *fiber.Ctx) (int64, error) {
	token := c.Query("token", c.Query("api_key"))
	project, err := h.gate.ProjectOf(c, token, c.Query("project_id"))
	return project.ID, err
}

func (h *DecideHTTP) answer(c *fiber.Ctx, k *call, project int64, shape form) {
	d := h.decider
	r := newRun(d.snapshots.Set(project), k.asked.distinctID, d.now())
	defer r.release()
	k.asked.into(r)
	d.settle(c.UserContext(), project, r)
	k.out = r.appendFlags(k.out, shape)
}

func (h *DecideHTTP) begin(k *call, withConfig bool) {
	k.out = append(k.out[:0], '{')
	if withConfig {
		k.out = append(k.out, h.head...)
	}
}

func (h *DecideHTTP) finish(c *fiber.Ctx, k *call, withConfig bool) error {
	if withConfig {
		k.out = append(k.out, h.tail...)
	}
	k.out = append(k.out, `"requestId":"`...)
	k.out = appendRequestID(k.out, web.RequestID(c))
	k.out = append(k.out, `","evaluatedAt":`...)
	k.out = strconv.AppendInt(k.out, h.decider.now().UnixMilli(), 10)
	k.out = append(k.out, '}')
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	c.Response().SetBody(k.out)
	if cap(k.out) > keptBytes {
		k.out = nil
	}
	return nil
}

// minimal answers what is no question: the config and no flags.
func (h *DecideHTTP) minimal(c *fiber.Ctx, shape form) error {
	k := calls.Get().(*call)
	defer calls.Put(k)
	h.begin(k, true)
	k.out = appendNoFlags(k.out, shape)
	return h.finish(c, k, true)
}

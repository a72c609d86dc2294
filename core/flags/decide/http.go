package decide

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/cookieless"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/envelope"
)

// Quota knows the projects whose flag requests are over quota.
type Quota interface {
	FlagsExhausted(projectID int64) bool
}

// HTTP serves the decide endpoints in the formats of all client versions,
// the remote config of browsers, and explanations for people.
type HTTP struct {
	decider *Decider
	quota   Quota
	router  *web.Router
	head    []byte // precedes the flags in an answer with config
	tail    []byte // follows the flags in an answer with config
	remote  []byte // the rest of the remote config
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the endpoints over d. A nil quota limits nothing.
func NewHTTP(d *Decider, quota Quota) *HTTP {
	h := &HTTP{decider: d, quota: quota}
	h.prepareConfig(d.cfg)
	return h
}

// Routes registers the paths.
func (h *HTTP) Routes(g *web.Router) {
	h.router = g
	wire := wrappingFactor * h.decider.cfg.DecideBytes
	g.PublicUpTo(wire, fiber.MethodPost, "/decide", h.decide)
	g.PublicUpTo(wire, fiber.MethodGet, "/decide", h.decide)
	g.Public(fiber.MethodHead, "/decide", answerHead)
	g.PublicUpTo(wire, fiber.MethodPost, "/flags", h.flags)
	g.PublicUpTo(wire, fiber.MethodGet, "/flags", h.flags)
	g.Public(fiber.MethodHead, "/flags", answerHead)
	g.Public(fiber.MethodOptions, "/flags", allowFlags)
	g.Public(fiber.MethodGet, "/array/:token/config", h.config)
	g.Public(fiber.MethodGet, "/array/:token/config.js", h.configScript)
	g.Manage(fiber.MethodPost, "/api/projects/:project_id/feature_flags/explain", "feature_flag:read", h.explainAll)
	g.Manage(fiber.MethodPost, "/api/projects/:project_id/feature_flags/:id/explain", "feature_flag:read", h.explain)
}

// answerHead answers probes, which send no key.
func answerHead(*fiber.Ctx) error { return nil }

func allowFlags(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAllow, "GET, HEAD, POST, OPTIONS")
	return web.Empty(c, fiber.StatusNoContent)
}

// decideShape reads ?v= of /decide. Of several the last one counts.
func decideShape(c *fiber.Ctx) (shape eval.Format, withConfig bool) {
	v, given, _ := queryOf(c)
	version, err := strconv.Atoi(v)
	switch {
	case !given || v == "":
		return eval.FormatKeys, true
	case err != nil || version == 2:
		return eval.FormatOn, true
	case version == 3:
		return eval.FormatValues, true
	case version > 3:
		return eval.FormatDetails, true
	}
	return eval.FormatKeys, true
}

// flagsShape reads ?v= and ?config= of /flags. Its first version is the third
// one of /decide. From the third version on, records have a typed value.
func flagsShape(c *fiber.Ctx) (shape eval.Format, withConfig bool) {
	v, given, config := queryOf(c)
	if !given && config == "" {
		return eval.FormatRecords, true
	}
	switch version, err := strconv.Atoi(v); {
	case err == nil && version == 2:
		return eval.FormatRecords, isTruthy(config)
	case err == nil && version > 2:
		return eval.FormatTyped, isTruthy(config)
	}
	return eval.FormatValues, true
}

func queryOf(c *fiber.Ctx) (v string, given bool, config string) {
	for name, value := range c.Context().QueryArgs().All() {
		switch string(name) {
		case "v":
			v, given = strings.TrimSpace(unsafeText(value)), true
		case "config":
			config = unsafeText(value)
		}
	}
	return v, given, config
}

func isTruthy(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "t", "yes", "y", "on":
		return true
	}
	return false
}

func (h *HTTP) decide(c *fiber.Ctx) error {
	shape, withConfig := decideShape(c)
	return h.serve(c, shape, withConfig)
}

func (h *HTTP) flags(c *fiber.Ctx) error {
	shape, withConfig := flagsShape(c)
	return h.serve(c, shape, withConfig)
}

var errTooLarge = fault.New(fault.TooLarge, "request_too_large", "Request too large.")

// wrappingFactor is how much larger than its JSON a body may be: base64 in a form.
const wrappingFactor = 2

// maxKeptRequest is the largest request whose parser a pooled call keeps. A parser
// keeps the memory of the most values that it has parsed.
const maxKeptRequest = 32 << 10

// maxKeptAnswer is the largest answer buffer that a pooled call keeps.
const maxKeptAnswer = 1 << 20

// call is the state of one request. Calls are pooled.
type call struct {
	parser   fastjson.Parser
	size     int // of the last request
	request  decideRequest
	location Location
	out      []byte
}

var calls = sync.Pool{New: func() any { return newCall() }}

func newCall() *call {
	c := &call{}
	c.request.visit = c.request.field
	c.request.visitGroup = c.request.group
	c.request.visitGroupProperties = c.request.groupProperties
	c.request.visitGroupTypes = c.request.checkGroupType
	return c
}

func (h *HTTP) serve(c *fiber.Ctx, shape eval.Format, withConfig bool) error {
	if c.Method() == fiber.MethodGet && !c.Context().QueryArgs().Has("data") {
		return h.minimal(c, shape)
	}
	k := calls.Get().(*call)
	defer k.release()
	project, err := h.readRequest(c, k)
	if err != nil {
		return err
	}
	h.begin(k, withConfig)
	switch over := h.quota != nil && h.quota.FlagsExhausted(project); {
	case k.request.disabled:
		k.out = eval.AppendNoFlags(k.out, shape)
	case k.request.distinctID == "":
		return fault.New(fault.Invalid, "missing_distinct_id", "Decide requires a distinct_id.")
	case over:
		k.out = append(eval.AppendNoFlags(k.out, shape), `"quotaLimited":["feature_flags"],`...)
	default:
		h.evaluate(c, k, project, shape)
	}
	return h.finish(c, k, withConfig)
}

// readRequest parses the request into k and returns its project. The key is found
// and checked before anything is built from the body.
func (h *HTTP) readRequest(c *fiber.Ctx, k *call) (int64, error) {
	limits := h.limits()
	k.request.reset()
	p, err := web.Body(c, limits)
	if f := fault.From(err); f != nil && f.Code == "no_data" {
		return h.readWithoutBody(c, err)
	}
	if err != nil {
		return 0, err
	}
	if len(p.JSON) > limits.InflatedBytes {
		return 0, errTooLarge
	}
	env, err := envelope.Read(p.JSON)
	if fault.Is(err, fault.Malformed) {
		return 0, malformed(err)
	}
	if err != nil {
		return 0, err
	}
	project, err := h.router.Authenticate(c, p, &env)
	if err != nil {
		return 0, err
	}
	if env.Dirty || env.Depth > limits.Depth {
		if err := web.Sanitize(c, limits); err != nil {
			return 0, err
		}
	}
	limits.Memory = web.Memory(c)
	if err := limits.Memory.StartProcessing(); err != nil {
		return 0, err
	}
	defer limits.Memory.EndProcessing()
	if err := limits.CheckValues(p.JSON); err != nil {
		return 0, err
	}
	return project.ID, k.parse(p.JSON)
}

// Limit returns limits with the bounds of a request that evaluates flags.
func (c Config) Limit(limits web.Limits) web.Limits {
	limits.InflatedBytes = min(limits.InflatedBytes, c.DecideBytes)
	limits.Values = c.DecideBytes / 16
	return limits
}

func (h *HTTP) limits() web.Limits {
	limits := h.decider.cfg.Limit(h.router.Limits())
	limits.Malformed = "malformed_data"
	limits.Unchecked = true
	return limits
}

func malformed(err error) error {
	return fault.New(fault.Malformed, "malformed_data", "Malformed request data: it must be a JSON object.").Because(err)
}

// parse reads the request: an object, or the first item of a list.
func (k *call) parse(text []byte) error {
	k.size = len(text)
	v, err := k.parser.ParseBytes(text)
	if err == nil && v.Type() == fastjson.TypeArray {
		v = v.Get("0")
	}
	if err != nil || v == nil || v.Type() != fastjson.TypeObject {
		return malformed(err)
	}
	v.GetObject().Visit(k.request.visit)
	return k.request.check()
}

// release returns k to the pool, without the memory of a large request.
func (k *call) release() {
	if k.size > maxKeptRequest {
		k.parser, k.size = fastjson.Parser{}, 0
		k.request.reset()
	}
	calls.Put(k)
}

// readWithoutBody returns the project of a request that has a key and no body. It
// fails with missing, the error about the body, if there is no key either.
func (h *HTTP) readWithoutBody(c *fiber.Ctx, missing error) (int64, error) {
	token := c.Query("token", c.Query("api_key"))
	if token == "" {
		return 0, missing
	}
	project, err := h.router.ProjectOf(c, token, c.Query("project_id"))
	return project.ID, err
}

// evaluate appends the flags of the project to the answer.
func (h *HTTP) evaluate(c *fiber.Ctx, k *call, project int64, shape eval.Format) {
	d := h.decider
	if k.request.distinctID == cookieless.Sentinel {
		h.identify(c, k, project)
	}
	e := eval.NewEvaluation(d.snapshots.Set(project), k.request.distinctID, d.now())
	defer e.Release()
	k.request.applyTo(e)
	if !k.request.noLocation && d.Locates(e) {
		d.Locate(e, &k.location, h.router.IP(c))
	}
	h.limit(c, k, e)
	setAge(c, d.run(c.UserContext(), project, e))
	k.out = e.AppendFlags(k.out, shape)
	if h.decider.cfg.MinimalFlagCalledEvents && shape >= eval.FormatRecords {
		k.out = append(k.out, `"minimalFlagCalledEvents":true,`...)
	}
}

// headerAge has the age in seconds of the oldest stored properties that were used
// because the database could not be read.
const headerAge = "Guidon-Properties-Age"

// setAge sets headerAge, rounded up, unless the age is 0.
func setAge(c *fiber.Ctx, age time.Duration) {
	if age > 0 {
		c.Set(headerAge, strconv.FormatInt(int64((age+time.Second-1)/time.Second), 10))
	}
}

// identify replaces the ids that stand for all visitors without cookies.
func (h *HTTP) identify(c *fiber.Ctx, k *call, project int64) {
	id, ok := h.decider.Visitor(project, Client{
		Addr: h.router.IP(c), Origin: c.Get(fiber.HeaderOrigin), Agent: c.Get(fiber.HeaderUserAgent), Zone: k.request.zone, Extra: k.request.extra,
	})
	if !ok {
		return
	}
	k.request.distinctID = id.DistinctID
	if k.request.deviceID == "" || k.request.deviceID == cookieless.Sentinel {
		k.request.deviceID = id.DeviceID
	}
	if k.request.anonymous == cookieless.Sentinel {
		k.request.anonymous = ""
	}
}

func (h *HTTP) begin(k *call, withConfig bool) {
	k.out = append(k.out[:0], '{')
	if withConfig {
		k.out = append(k.out, h.head...)
	}
}

func (h *HTTP) finish(c *fiber.Ctx, k *call, withConfig bool) error {
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
	if cap(k.out) > maxKeptAnswer {
		k.out = nil
	}
	return nil
}

// minimal answers a request without data: the config and no flags.
func (h *HTTP) minimal(c *fiber.Ctx, shape eval.Format) error {
	k := calls.Get().(*call)
	defer calls.Put(k)
	h.begin(k, true)
	k.out = eval.AppendNoFlags(k.out, shape)
	return h.finish(c, k, true)
}

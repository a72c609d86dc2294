package ofrep

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fastjson"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/cookieless"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves the two paths of the protocol.
type HTTP struct {
	cfg     decide.Config
	decider *decide.Decider
	quota   decide.Quota
	changes Changes
	log     *zap.Logger
	router  *web.Router
	tables  tables
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the paths over d. A nil quota limits nothing, nil changes and log
// disable event streams and logging.
func NewHTTP(cfg decide.Config, d *decide.Decider, quota decide.Quota, changes Changes, log *zap.Logger) *HTTP {
	if log == nil {
		log = zap.NewNop()
	}
	return &HTTP{cfg: cfg, decider: d, quota: quota, changes: changes, log: log.Named("ofrep")}
}

const pathFlags = "/ofrep/v1/evaluate/flags"

// Routes registers the paths.
func (h *HTTP) Routes(g *web.Router) {
	h.router = g
	g.PublicUpTo(h.cfg.DecideBytes, fiber.MethodPost, pathFlags, h.recovered(h.bulk))
	g.PublicUpTo(h.cfg.DecideBytes, fiber.MethodPost, pathFlags+"/:key", h.recovered(h.single))
}

// maxKept bounds the buffers that a pooled call keeps.
const maxKept = 1 << 20

// call is the state of one request. Calls are pooled.
type call struct {
	context  evaluationContext
	location decide.Location
	out      []byte
}

var calls = sync.Pool{New: func() any { return new(call) }}

func (k *call) release() {
	if k.context.size > maxKept/32 {
		k.context.parser = fastjson.Parser{}
	}
	if cap(k.out) > maxKept {
		k.out = nil
	}
	calls.Put(k)
}

// exposedHeaders are the headers that scripts of other origins may read.
const exposedHeaders = "ETag, Retry-After"

// begin authenticates the request and reads its context into k.
func (h *HTTP) begin(c *fiber.Ctx, k *call) (project int64, err error) {
	c.Set(fiber.HeaderAccessControlExposeHeaders, exposedHeaders)
	found, err := h.router.ProjectOf(c, keyOf(c), "")
	if err != nil {
		return 0, err
	}
	if h.quota != nil && h.quota.FlagsExhausted(found.ID) {
		return 0, errQuota
	}
	limits := h.cfg.Limit(h.router.Limits())
	limits.Malformed = codeParse
	p, err := web.Body(c, limits)
	if err != nil {
		return 0, err
	}
	limits.Memory = web.Memory(c)
	if err := limits.Memory.StartProcessing(); err != nil {
		return 0, err
	}
	defer limits.Memory.EndProcessing()
	if err := limits.CheckValues(p.JSON); err != nil {
		return 0, err
	}
	return found.ID, k.context.parse(p.JSON)
}

// keyOf returns the key of the request: of the Authorization header, else of
// X-API-Key.
func keyOf(c *fiber.Ctx) string {
	const scheme = "bearer "
	if h := c.Get(fiber.HeaderAuthorization); len(h) > len(scheme) && strings.EqualFold(h[:len(scheme)], scheme) {
		return strings.TrimSpace(h[len(scheme):])
	}
	return strings.TrimSpace(c.Get("X-API-Key"))
}

// recovered runs a handler; a panic in it becomes an answer in the form of the protocol.
func (h *HTTP) recovered(run func(*fiber.Ctx) error) func(*fiber.Ctx) error {
	return func(c *fiber.Ctx) (err error) {
		defer func() {
			if p := recover(); p != nil {
				h.log.Error("panic", zap.String("request_id", web.RequestID(c)), zap.Any("panic", p), zap.Stack("stack"))
				err = h.fail(c, strings.Clone(web.Param(c, "key")), fmt.Errorf("panic: %v", p))
			}
		}()
		return run(c)
	}
}

// single answers the value of one flag.
func (h *HTTP) single(c *fiber.Ctx) error {
	k := calls.Get().(*call)
	defer k.release()
	key := strings.Clone(web.Param(c, "key"))
	project, err := h.begin(c, k)
	if err != nil {
		return h.fail(c, key, err)
	}
	h.identify(c, k, project)
	e, set := h.decider.Begin(project, k.context.targetingKey)
	defer e.Release()
	h.describe(c, k, e)
	e.Select([]string{key}, true)
	limit(c, k, e, eval.ServerRuntime)
	h.decider.Finish(c.UserContext(), project, e)
	if e.Len() == 0 {
		return h.fail(c, key, errNoFlag)
	}
	place, d := e.Decision(0)
	k.out = h.tables.of(project, set).flags[place].append(k.out[:0], &d)
	c.Status(statusOf(d.Failed))
	return send(c, k.out)
}

// identify replaces the targeting key that stands for all visitors without cookies.
func (h *HTTP) identify(c *fiber.Ctx, k *call, project int64) {
	if k.context.targetingKey != cookieless.Sentinel {
		return
	}
	id, ok := h.decider.Visitor(project, decide.Client{Addr: h.router.IP(c), Origin: c.Get(fiber.HeaderOrigin), Agent: c.Get(fiber.HeaderUserAgent)})
	if ok {
		k.context.targetingKey = id.DistinctID
	}
}

// describe describes the request to an evaluation, with the location of its address.
func (h *HTTP) describe(c *fiber.Ctx, k *call, e *eval.Evaluation) {
	k.context.applyTo(e)
	if !k.context.noLocation && h.decider.Locates(e) {
		h.decider.Locate(e, &k.location, h.router.IP(c))
	}
}

// limit leaves out the flags of other runtimes and contexts. A client that is not
// recognized has the runtime that the protocol has made the request for: servers ask
// for one flag, browsers and applications for all.
func limit(c *fiber.Ctx, k *call, e *eval.Evaluation, usual eval.Runtime) {
	if !e.IsScoped() {
		return
	}
	runtime := decide.RuntimeOf(c, k.context.runtime)
	if runtime == eval.UnknownRuntime {
		runtime = usual
	}
	e.Limit(eval.Scope{Runtime: runtime, Contexts: k.context.contexts})
}

// bulk answers the values of all flags of the project, disabled ones included.
func (h *HTTP) bulk(c *fiber.Ctx) error {
	k := calls.Get().(*call)
	defer k.release()
	project, err := h.begin(c, k)
	if err != nil {
		return h.fail(c, "", err)
	}
	h.await(c, project)
	h.identify(c, k, project)
	e, set := h.decider.Begin(project, k.context.targetingKey)
	defer e.Release()
	h.describe(c, k, e)
	e.Select(nil, true)
	limit(c, k, e, eval.ClientRuntime)
	h.decider.Finish(c.UserContext(), project, e)
	t := h.tables.of(project, set)
	k.out = append(k.out[:0], `{"flags":[`...)
	for i := range e.Len() {
		if i > 0 {
			k.out = append(k.out, ',')
		}
		place, d := e.Decision(i)
		k.out = t.flags[place].append(k.out, &d)
	}
	k.out = append(k.out, `],"metadata":{"flagSetId":"`...)
	k.out = strconv.AppendInt(k.out, project, 10)
	k.out = append(k.out, `"}`...)
	k.out = append(h.appendStreams(c, k.out, keyOf(c)), '}')
	return sendWithETag(c, k.out)
}

// sendWithETag answers with body, or with 304 if the client has it. The tag is a
// hash of the answer: it changes with any of the values.
func sendWithETag(c *fiber.Ctx, body []byte) error {
	var buf [24]byte
	tag := append(buf[:0], '"')
	tag = strconv.AppendUint(tag, xxhash.Sum64(body), 36)
	tag = append(tag, '"')
	h := &c.Response().Header
	h.SetBytesV(fiber.HeaderETag, tag)
	h.Set(fiber.HeaderCacheControl, "private, no-cache")
	if matches(c.Get(fiber.HeaderIfNoneMatch), textView(tag)) {
		return web.Empty(c, fiber.StatusNotModified)
	}
	return send(c, body)
}

// matches reports whether an If-None-Match header names a tag: strong, weak,
// without quotes, or in a list.
func matches(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == "*" || candidate != "" && strings.Trim(candidate, `"`) == strings.Trim(tag, `"`) {
			return true
		}
	}
	return false
}

func send(c *fiber.Ctx, body []byte) error {
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	c.Response().SetBody(body)
	return nil
}

package ingestion

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/web"
)

// keptBuffer is the largest buffer that goes back to the pool.
const keptBuffer = 1 << 20

var buffers = sync.Pool{New: func() any { return new([]byte) }}

var accepted = []byte(`{"status":1}`)

// capture takes the events of one request in. When it answers with success the
// request is on disk; whatever goes wrong before that is an answer a client
// either repeats (503) or has to be corrected for (4xx).
func (h *HTTP) capture(c *fiber.Ctx, defaultName string) error {
	arrived := time.Now()
	verdicts, err := h.accept(c, arrived, defaultName)
	if errors.Is(err, errOverQuota) {
		return h.overQuota(c, verdicts)
	}
	if err != nil {
		h.metrics.refused.WithLabelValues(codeOf(err)).Inc()
		return err
	}
	if verdicts != nil {
		return web.JSON(c, verdictsJSON{1, verdicts, nil})
	}
	if c.Context().QueryArgs().GetUintOrZero("beacon") == 1 {
		return web.Empty(c, fiber.StatusNoContent)
	}
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	c.Response().SetBodyRaw(accepted)
	return nil
}

func codeOf(err error) string {
	if f := fault.From(err); f != nil && f.Code != "" {
		return f.Code
	}
	return "error"
}

// verdictsHeader asks for a verdict on each event in the answer. Clients of this
// protocol never send it; people and importers do.
const verdictsHeader = "Guidon-Verdicts"

type verdictsJSON struct {
	Status  int       `json:"status"`
	Results []Verdict `json:"results"` // in the order of the request
	Limited []string  `json:"quota_limited,omitempty"`
}

// errOverQuota says that the project has sent as many events as it may.
var errOverQuota = fault.New(fault.PaymentRequired, "billing_limit_exceeded", "The project has sent as many events as it may.")

// limited is the answer to a project that is over its quota: a client that was
// told anything but 200 would send the same again and again.
var limited = []byte(`{"status":1,"quota_limited":["events"]}`)

// overQuota answers a request whose events were not taken.
func (h *HTTP) overQuota(c *fiber.Ctx, verdicts []Verdict) error {
	if verdicts != nil {
		for i := range verdicts {
			verdicts[i] = Verdict{"drop", KindOverQuota}
		}
		return web.JSON(c, verdictsJSON{1, verdicts, []string{"events"}})
	}
	if c.Context().QueryArgs().GetUintOrZero("beacon") == 1 {
		return web.Empty(c, fiber.StatusNoContent)
	}
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	c.Response().SetBodyRaw(limited)
	return nil
}

// accept finds out whose events these are and appends them to the journal. It
// returns verdicts when they were asked for, nil otherwise.
func (h *HTTP) accept(c *fiber.Ctx, arrived time.Time, defaultName string) (verdicts []Verdict, err error) {
	held, err := h.budget.enter(c)
	if err != nil {
		return nil, err
	}
	defer h.budget.leave(held)
	limits := h.gate.Limits()
	limits.Unchecked = true // ReadEnvelope checks, and Decode mends
	p, err := web.Body(c, limits)
	if err != nil {
		return nil, err
	}
	env, err := ReadEnvelope(p.JSON)
	if err != nil {
		return nil, err
	}
	project, err := h.project(c, p, &env)
	if err != nil || env.Count == 0 {
		return nil, err
	}
	rec := event.Record{
		ReceivedAt: arrived, ProjectID: project.ID, RequestID: newRequestID(), Historical: env.Historical,
		Anonymise: project.AnonymizeIPs, SentAt: env.SentAt, DefaultName: defaultName, Items: env.Items,
	}
	if !project.AnonymizeIPs {
		rec.ClientIP = h.gate.IP(c).WithZone("")
	}
	if rec.SentAt == "" {
		rec.SentAt = sentBeside(p)
	}
	if len(c.Request().Header.Peek(verdictsHeader)) > 0 {
		verdicts = h.decoders.judge(&rec)
	}
	return verdicts, h.append(c, &rec, env.Count)
}

// sentBeside returns the client's clock as the query or the form has it, in
// milliseconds since 1970. What lies before 2021 is not a clock: browsers put
// all sorts of numbers there to get around caches.
func sentBeside(p *web.Payload) string {
	for _, s := range [...]string{p.Query("_"), p.Query("sent_at"), p.Form("_"), p.Form("sent_at")} {
		if s == "" {
			continue // an error of ParseInt is not free
		}
		if ms, err := strconv.ParseInt(s, 10, 64); err == nil && ms >= 1609459200000 && ms < 1e14 {
			return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
		}
	}
	return ""
}

// project resolves the key in the body or beside it.
func (h *HTTP) project(c *fiber.Ctx, p *web.Payload, env *Envelope) (auth.Project, error) {
	token := env.Token
	if token == "" {
		token = web.TokenFromRequest(c, p)
	}
	if token == "" {
		return auth.Project{}, fault.New(fault.Unauthenticated, "invalid_api_key",
			"API key not provided. Send the key of your project as api_key.")
	}
	id := web.ProjectID(p, nil)
	if id == "" {
		id = env.ProjectID
	}
	return h.gate.ProjectOf(c, token, id)
}

// append writes the record into the journal and waits until it is on disk. It
// fails with errOverQuota when the project may not send any more.
func (h *HTTP) append(c *fiber.Ctx, rec *event.Record, events int) error {
	if !h.meter.Take(rec.ProjectID, events) {
		return errOverQuota
	}
	buf := buffers.Get().(*[]byte)
	*buf = rec.Append((*buf)[:0])
	_, err := h.journal.Append(c.UserContext(), *buf)
	if cap(*buf) <= keptBuffer {
		buffers.Put(buf)
	}
	if err != nil {
		h.meter.GiveBack(rec.ProjectID, events)
		return err
	}
	h.metrics.accepted.Add(float64(events))
	return nil
}

func newRequestID() (id [16]byte) {
	hi, lo := rand.Uint64(), rand.Uint64()
	for i := range 8 {
		id[i], id[8+i] = byte(hi>>(8*i)), byte(lo>>(8*i))
	}
	return id
}

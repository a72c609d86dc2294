package capture

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/core/web"
)

var acceptedAnswer = []byte(`{"status":1}`)

// capture appends the events of one request to the journal. It answers success
// after they are on disk. A client retries after 503; after 4xx it must be fixed.
func (h *HTTP) capture(c *fiber.Ctx, defaultName string) error {
	arrived := time.Now()
	results, events, err := h.accept(c, arrived, defaultName)
	if errors.Is(err, errOverQuota) {
		return h.answerOverQuota(c, results)
	}
	if err != nil {
		h.metrics.refuse(fault.CodeOf(err), events)
		return err
	}
	if results != nil {
		return web.JSON(c, resultsJSON{1, results, nil})
	}
	if c.Context().QueryArgs().GetUintOrZero("beacon") == 1 {
		return web.Empty(c, fiber.StatusNoContent)
	}
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	c.Response().SetBodyRaw(acceptedAnswer)
	return nil
}

// resultsHeader requests a result for each item in the answer. The client
// libraries do not send it; importers and users with curl do.
const resultsHeader = "Guidon-Results"

// oldResultsHeader is the former name of resultsHeader. It works for one more
// release.
const oldResultsHeader = "Guidon-Verdicts"

// wantsResults reports whether the client requests results.
func wantsResults(c *fiber.Ctx) bool {
	return len(c.Request().Header.Peek(resultsHeader)) > 0 || len(c.Request().Header.Peek(oldResultsHeader)) > 0
}

type resultsJSON struct {
	Status  int      `json:"status"`
	Results []Result `json:"results"` // in the order of the request
	Limited []string `json:"quota_limited,omitempty"`
}

// errOverQuota is the error for events beyond the quota of their project.
var errOverQuota = fault.New(fault.PaymentRequired, "billing_limit_exceeded", "The project has sent as many events as it may.")

// limitedAnswer is the answer to a project that is over quota. Its status is 200:
// after any other a client retries.
var limitedAnswer = []byte(`{"status":1,"quota_limited":["events"]}`)

// answerOverQuota answers a request whose events are dropped over quota.
func (h *HTTP) answerOverQuota(c *fiber.Ctx, results []Result) error {
	if results != nil {
		for i := range results {
			results[i] = Result{"drop", KindOverQuota}
		}
		return web.JSON(c, resultsJSON{1, results, []string{"events"}})
	}
	if c.Context().QueryArgs().GetUintOrZero("beacon") == 1 {
		return web.Empty(c, fiber.StatusNoContent)
	}
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	c.Response().SetBodyRaw(limitedAnswer)
	return nil
}

// accept finds the project of a request and appends its events to the journal. It
// returns results if the client requests them, else nil, and the number of events, 0 if
// they were not read.
func (h *HTTP) accept(c *fiber.Ctx, arrived time.Time, defaultName string) (results []Result, events int, err error) {
	var in intake
	defer in.held.Release()
	if err := h.read(c, &in); err != nil {
		return nil, 0, err
	}
	if in.envErr != nil {
		return nil, 0, in.envErr
	}
	env := &in.env
	project, err := h.router.Authenticate(c, in.payload, env)
	if err != nil || env.Count == 0 {
		return nil, env.Count, err
	}
	rec := event.Record{
		ReceivedAt: arrived, ProjectID: project.ID, RequestID: newRequestID(), Historical: env.Historical,
		Anonymise: project.AnonymizeIPs, SentAt: env.SentAt, DefaultName: defaultName, Items: env.Items,
	}
	if rec.SentAt == "" {
		rec.SentAt = sentAtFromRequest(in.payload)
	}
	rec.Items = withoutSecrets(rec.Items, env.Token)
	if err := h.setClient(c, &rec, project); err != nil {
		return nil, env.Count, err
	}
	if wantsResults(c) {
		results = h.validators.validate(&rec)
	}
	return results, env.Count, h.appendRecord(c, &rec, env.Count)
}

// withoutSecrets returns items without personal keys, which authenticate a request,
// and secret keys: they are never stored. token is the key in the body.
func withoutSecrets(items []byte, token string) []byte {
	if !strings.HasPrefix(token, apikey.PersonalPrefix) {
		if !apikey.MayHoldSecret(items) {
			return items
		}
		token = ""
	}
	return apikey.RemoveSecrets(items, token)
}

// sentAtFromRequest returns the client's clock from the query or the form:
// milliseconds since 1970. A value before 2021 is no clock: browsers send other
// numbers under these names to get around caches.
func sentAtFromRequest(p *web.Payload) string {
	for _, s := range [...]string{p.Query("_"), p.Query("sent_at"), p.Form("_"), p.Form("sent_at")} {
		if s == "" {
			continue // an error of ParseInt allocates
		}
		if ms, err := strconv.ParseInt(s, 10, 64); err == nil && ms >= 1609459200000 && ms < 1e14 {
			return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
		}
	}
	return ""
}

// appendRecord appends the record to the log, in a part for each partition, and
// returns when it is durable. It fails with errOverQuota when the project is over quota.
func (h *HTTP) appendRecord(c *fiber.Ctx, rec *event.Record, events int) error {
	if !h.meter.Take(rec.ProjectID, events) {
		h.metrics.refused.WithLabelValues(KindOverQuota).Add(float64(events))
		return errOverQuota
	}
	ctx, span := tracing.Child(c.UserContext(), "journal append")
	if span != nil {
		span.Int("guidon.events", int64(events))
		rec.Trace = tracing.OriginOf(c.UserContext())
	}
	buf := h.records.Get().(*recordBuffer)
	parts := buf.encode(rec)
	web.Memory(c).EndProcessing()
	err := h.log.Append(ctx, parts)
	span.End(err)
	if buf.reusable() {
		h.records.Put(buf)
	}
	if err != nil {
		h.meter.Refund(rec.ProjectID, events)
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

package ingestion

import (
	"errors"
	"math"
	"mime"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/web"
)

// v1Path is the endpoint of the 2026 protocol: the key is a bearer token, the
// request describes itself in headers, and the answer has a result an event.
const v1Path = "/i/v1/analytics/events"

// The headers a request of the 2026 protocol must have, beside its key.
var v1Headers = [...]string{"PostHog-Sdk-Info", "PostHog-Attempt", "PostHog-Request-Id", "PostHog-Request-Timestamp"}

// v1Refusal is a failure of a whole request in the terms of that protocol.
type v1Refusal struct {
	status int
	code   string
	why    string
}

func (e *v1Refusal) Error() string { return e.code + ": " + e.why }

// captureV1 takes the events of one request in and answers with a result for
// each.
func (h *HTTP) captureV1(c *fiber.Ctx) error {
	if id := c.Get("PostHog-Request-Id"); id != "" {
		c.Set("PostHog-Request-Id", id)
	}
	results, err := h.acceptV1(c, time.Now())
	if err != nil {
		return h.refuseV1(c, err)
	}
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	c.Response().SetBodyRaw(results)
	return nil
}

func (h *HTTP) acceptV1(c *fiber.Ctx, arrived time.Time) ([]byte, error) {
	if err := v1Head(c); err != nil {
		return nil, err
	}
	project, err := h.gate.ProjectOf(c, v1Token(c), "")
	if err != nil {
		return nil, err
	}
	held, err := h.budget.enter(c)
	if err != nil {
		return nil, err
	}
	defer h.budget.leave(held)
	limits := h.gate.Limits()
	limits.Unchecked = true
	p, err := web.Body(c, limits)
	if err != nil {
		return nil, err
	}
	env, err := ReadEnvelope(p.JSON)
	if fault.Is(err, fault.Unauthenticated) {
		err = nil // keys in the body mean nothing here
	}
	switch {
	case err != nil || !env.Batch:
		return nil, &v1Refusal{fiber.StatusBadRequest, "invalid_batch", "The body must be a JSON object with a batch of events."}
	case env.Count == 0:
		return nil, &v1Refusal{fiber.StatusBadRequest, "empty_batch", "The batch holds no event."}
	}
	ids, err := v1UUIDs(env.Items)
	if err != nil {
		return nil, err
	}
	rec := event.Record{
		ReceivedAt: arrived, ProjectID: project.ID, RequestID: v1RequestID(c), Historical: env.Historical, Verbatim: true,
		Anonymise: project.AnonymizeIPs, SentAt: c.Get("PostHog-Request-Timestamp"), Items: env.Items,
	}
	if !project.AnonymizeIPs {
		rec.ClientIP = h.gate.IP(c).WithZone("")
	}
	verdicts := h.decoders.judge(&rec)
	if err := h.append(c, &rec, env.Count); err != nil {
		return nil, err
	}
	return v1Results(ids, verdicts), nil
}

// v1Head checks what a request says about itself; everything that is missing
// is named at once.
func v1Head(c *fiber.Ctx) error {
	var missing []string
	if v1Token(c) == "" {
		missing = append(missing, "Authorization")
	}
	for _, name := range v1Headers {
		if c.Get(name) == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return &v1Refusal{fiber.StatusBadRequest, "missing_headers", "Missing headers: " + strings.Join(missing, ", ") + "."}
	}
	if n, err := strconv.Atoi(c.Get("PostHog-Attempt")); err != nil || n < 1 {
		return &v1Refusal{fiber.StatusBadRequest, "invalid_headers", "PostHog-Attempt must be a number from 1."}
	}
	if _, err := time.Parse(time.RFC3339Nano, c.Get("PostHog-Request-Timestamp")); err != nil {
		return &v1Refusal{fiber.StatusBadRequest, "invalid_headers", "PostHog-Request-Timestamp must be a time as in RFC 3339."}
	}
	if kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType)); err != nil || kind != fiber.MIMEApplicationJSON {
		return &v1Refusal{fiber.StatusUnsupportedMediaType, "unsupported_content_type", "The Content-Type must be application/json."}
	}
	switch strings.ToLower(c.Get(fiber.HeaderContentEncoding)) {
	case "", "identity", "gzip", "deflate", "br", "zstd":
		return nil
	}
	return &v1Refusal{fiber.StatusUnsupportedMediaType, "unsupported_encoding", "The Content-Encoding must be gzip, deflate, br or zstd."}
}

// v1Token returns the key of the Authorization header, empty when there is none.
func v1Token(c *fiber.Ctx) string {
	scheme, token, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// v1RequestID is the client's id of the request, the same in every attempt; one
// of our own when it is no uuid.
func v1RequestID(c *fiber.Ctx) [16]byte {
	if id, err := uuid.Parse(c.Get("PostHog-Request-Id")); err == nil {
		return id
	}
	return newRequestID()
}

// v1UUIDs returns the uuid of each item as sent: the answer is keyed by them, so
// every event must have a valid one.
func v1UUIDs(items []byte) ([]string, error) {
	ids := event.SentUUIDs(items)
	for i, id := range ids {
		if _, err := uuid.Parse(id); err != nil {
			return nil, &v1Refusal{fiber.StatusBadRequest, "invalid_event_uuid", "Event " + strconv.Itoa(i) + " has no valid uuid."}
		}
	}
	return ids, nil
}

// v1Details names what that protocol calls otherwise.
var v1Details = map[string]string{
	event.KindMissingName:        "missing_event_name",
	event.KindInvalidDistinctID:  "missing_distinct_id",
	event.KindDistinctIDTooLong:  "distinct_id_too_large",
	event.KindInvalidProperties:  "malformed_event_properties",
	event.KindNotAnObject:        "malformed_event",
	event.KindEmptyEvent:         "malformed_event",
	event.KindTooDeep:            "malformed_event_properties",
	event.KindTooManyProperties:  "malformed_event_properties",
	event.KindPersonlessIdentify: "invalid_event_when_process_person_profile_is_false",
}

// v1Results writes the answer. Of an event that comes twice the first counts;
// the second is the same event and needs no result of its own.
func v1Results(ids []string, verdicts []Verdict) []byte {
	out := append(make([]byte, 0, 16+64*len(ids)), `{"results":{`...)
	seen := make(map[string]struct{}, len(ids))
	for i, id := range ids {
		if _, ok := seen[id]; ok {
			continue
		}
		if len(seen) > 0 {
			out = append(out, ',')
		}
		seen[id] = struct{}{}
		out = append(append(append(out, '"'), id...), `":{"result":"`...)
		out = append(append(out, verdicts[i].Result...), '"')
		if detail := verdicts[i].Detail; detail != "" {
			if name, ok := v1Details[detail]; ok {
				detail = name
			}
			out = append(append(append(out, `,"details":"`...), detail...), '"')
		}
		out = append(out, '}')
	}
	return append(out, `}}`...)
}

// refuseV1 answers with the error body of the 2026 protocol.
func (h *HTTP) refuseV1(c *fiber.Ctx, err error) error {
	r, ok := errors.AsType[*v1Refusal](err)
	f := fault.From(err)
	switch {
	case ok:
	case f == nil:
		return err
	default:
		r = v1RefusalOf(f)
	}
	h.metrics.refused.WithLabelValues(r.code).Inc()
	if r.status == fiber.StatusInternalServerError {
		return err // the gate knows what to log
	}
	if f != nil && f.RetryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	c.Set(fiber.HeaderAccept, fiber.MIMEApplicationJSON)
	c.Set(fiber.HeaderAcceptEncoding, "gzip, deflate, br, zstd")
	c.Status(r.status)
	return web.JSON(c, map[string]string{"error": r.code, "error_description": r.why})
}

// v1RefusalOf puts a failure of the house into the terms of that protocol.
func v1RefusalOf(f *fault.Error) *v1Refusal {
	switch f.Kind {
	case fault.Unauthenticated:
		return &v1Refusal{fiber.StatusUnauthorized, "invalid_api_token", f.Detail}
	case fault.Invalid, fault.Malformed:
		return &v1Refusal{fiber.StatusBadRequest, "invalid_batch", f.Detail}
	case fault.TooLarge:
		return &v1Refusal{fiber.StatusRequestEntityTooLarge, "payload_too_large", "The request is too large."}
	case fault.Unsupported:
		return &v1Refusal{fiber.StatusUnsupportedMediaType, "unsupported_encoding", f.Detail}
	case fault.Throttled:
		return &v1Refusal{fiber.StatusTooManyRequests, "rate_limited", "Too many requests."}
	case fault.PaymentRequired:
		return &v1Refusal{fiber.StatusPaymentRequired, "billing_limit_exceeded", f.Detail}
	case fault.Unavailable:
		return &v1Refusal{fiber.StatusServiceUnavailable, "service_unavailable", f.Detail}
	default:
		return &v1Refusal{fiber.StatusInternalServerError, "internal_error", ""}
	}
}

package capture

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

// v1Paths are the endpoints of the 2026 protocol: the key is a bearer token, headers
// describe the request, and the answer has a result per event. Clients send AI
// events, which are larger, to a path of their own.
var v1Paths = [...]string{"/i/v1/analytics/events", "/i/v1/ai/events"}

// v1Headers are the required headers of the 2026 protocol, beside the key.
var v1Headers = [...]string{"PostHog-Sdk-Info", "PostHog-Attempt", "PostHog-Request-Id", "PostHog-Request-Timestamp"}

// v1Error is a failure of a whole request in that protocol.
type v1Error struct {
	status      int
	code        string
	description string
}

func (e *v1Error) Error() string { return e.code + ": " + e.description }

// captureV1 appends the events of one request to the journal and answers with a
// result for each.
func (h *HTTP) captureV1(c *fiber.Ctx) error {
	if id := c.Get("PostHog-Request-Id"); id != "" {
		c.Set("PostHog-Request-Id", id)
	}
	results, events, err := h.acceptV1(c, time.Now())
	if err != nil {
		return h.answerV1Error(c, events, err)
	}
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	c.Response().SetBodyRaw(results)
	return nil
}

func (h *HTTP) acceptV1(c *fiber.Ctx, arrived time.Time) (results []byte, events int, err error) {
	if err := checkV1Headers(c); err != nil {
		return nil, 0, err
	}
	project, err := h.router.ProjectOf(c, v1Token(c), "")
	if err != nil {
		return nil, 0, err
	}
	var in intake
	defer in.held.Release()
	if err := h.read(c, &in); err != nil {
		return nil, 0, err
	}
	env := &in.env
	switch { // keys in the body are ignored here
	case in.envErr != nil && !fault.Is(in.envErr, fault.Unauthenticated), !env.Batch:
		return nil, 0, &v1Error{fiber.StatusBadRequest, "invalid_batch", "The body must be a JSON object with a batch of events."}
	case env.Count == 0:
		return nil, 0, &v1Error{fiber.StatusBadRequest, "empty_batch", "The batch holds no event."}
	}
	ids, err := v1UUIDs(env.Items)
	if err != nil {
		return nil, env.Count, err
	}
	rec := event.Record{
		ReceivedAt: arrived, ProjectID: project.ID, RequestID: v1RequestID(c), Historical: env.Historical, Verbatim: true,
		Anonymise: project.AnonymizeIPs, SentAt: c.Get("PostHog-Request-Timestamp"),
		Library: strings.Clone(c.Get("PostHog-Sdk-Info")), Items: env.Items,
	}
	rec.Items = withoutSecrets(rec.Items, v1Token(c))
	if err := h.setClient(c, &rec, project); err != nil {
		return nil, env.Count, err
	}
	validated := h.validators.validate(&rec)
	if err := h.appendRecord(c, &rec, env.Count); err != nil {
		return nil, env.Count, err
	}
	return v1Results(ids, validated), env.Count, nil
}

// checkV1Headers validates the headers. Its error names all missing ones.
func checkV1Headers(c *fiber.Ctx) error {
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
		return &v1Error{fiber.StatusBadRequest, "missing_headers", "Missing headers: " + strings.Join(missing, ", ") + "."}
	}
	if n, err := strconv.Atoi(c.Get("PostHog-Attempt")); err != nil || n < 1 {
		return &v1Error{fiber.StatusBadRequest, "invalid_headers", "PostHog-Attempt must be a number from 1."}
	}
	if _, err := time.Parse(time.RFC3339Nano, c.Get("PostHog-Request-Timestamp")); err != nil {
		return &v1Error{fiber.StatusBadRequest, "invalid_headers", "PostHog-Request-Timestamp must be a time as in RFC 3339."}
	}
	if kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType)); err != nil || kind != fiber.MIMEApplicationJSON {
		return &v1Error{fiber.StatusUnsupportedMediaType, "unsupported_content_type", "The Content-Type must be application/json."}
	}
	switch strings.ToLower(c.Get(fiber.HeaderContentEncoding)) {
	case "", "identity", "gzip", "deflate", "br", "zstd":
		return nil
	}
	return &v1Error{fiber.StatusUnsupportedMediaType, "unsupported_encoding", "The Content-Encoding must be gzip, deflate, br or zstd."}
}

// v1Token returns the key of the Authorization header, or "".
func v1Token(c *fiber.Ctx) string {
	scheme, token, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// v1RequestID returns the client's request id, which is the same in every attempt,
// or a new one if that is not a uuid.
func v1RequestID(c *fiber.Ctx) [16]byte {
	if id, err := uuid.Parse(c.Get("PostHog-Request-Id")); err == nil {
		return id
	}
	return web.NewRequestID()
}

// v1UUIDs returns the uuid of each item as sent: the answer is keyed by them, so
// every event must have a valid one.
func v1UUIDs(items []byte) ([]string, error) {
	ids := event.SentUUIDs(items)
	for i, id := range ids {
		if _, err := uuid.Parse(id); err != nil {
			return nil, &v1Error{fiber.StatusBadRequest, "invalid_event_uuid", "Event " + strconv.Itoa(i) + " has no valid uuid."}
		}
	}
	return ids, nil
}

// v1Details maps kinds of notices to the details of that protocol.
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

// v1Results returns the answer. If a uuid occurs twice the first result counts:
// both items are the same event.
func v1Results(ids []string, results []Result) []byte {
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
		out = append(append(out, results[i].Result...), '"')
		if detail := results[i].Detail; detail != "" {
			if name, ok := v1Details[detail]; ok {
				detail = name
			}
			out = append(append(append(out, `,"details":"`...), detail...), '"')
		}
		out = append(out, '}')
	}
	return append(out, `}}`...)
}

// answerV1Error answers a request with this many events, 0 if they were not read, with the
// error body of the 2026 protocol.
func (h *HTTP) answerV1Error(c *fiber.Ctx, events int, err error) error {
	r, ok := errors.AsType[*v1Error](err)
	f := fault.From(err)
	switch {
	case ok:
	case f == nil:
		return err
	default:
		r = newV1Error(f)
	}
	h.metrics.rejected.WithLabelValues(r.code).Inc()
	if !IsOverQuota(err) { // those events are counted
		reason := r.code
		if f != nil {
			reason = f.Code // as in the other protocols
		}
		h.metrics.refuseEvents(reason, events)
	}
	if r.status == fiber.StatusInternalServerError {
		return err // web logs it
	}
	if f != nil && f.RetryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	c.Set(fiber.HeaderAccept, fiber.MIMEApplicationJSON)
	c.Set(fiber.HeaderAcceptEncoding, "gzip, deflate, br, zstd")
	c.Status(r.status)
	return web.JSON(c, map[string]string{"error": r.code, "error_description": r.description})
}

// newV1Error translates a fault to that protocol.
func newV1Error(f *fault.Error) *v1Error {
	switch f.Kind {
	case fault.Unauthenticated:
		return &v1Error{fiber.StatusUnauthorized, "invalid_api_token", f.Detail}
	case fault.Invalid, fault.Malformed:
		return &v1Error{fiber.StatusBadRequest, "invalid_batch", f.Detail}
	case fault.TooLarge:
		return &v1Error{fiber.StatusRequestEntityTooLarge, "payload_too_large", "The request is too large."}
	case fault.Unsupported:
		return &v1Error{fiber.StatusUnsupportedMediaType, "unsupported_encoding", f.Detail}
	case fault.Throttled:
		return &v1Error{fiber.StatusTooManyRequests, "rate_limited", "Too many requests."}
	case fault.PaymentRequired:
		return &v1Error{fiber.StatusPaymentRequired, "billing_limit_exceeded", f.Detail}
	case fault.Unavailable:
		return &v1Error{fiber.StatusServiceUnavailable, "service_unavailable", f.Detail}
	default:
		return &v1Error{fiber.StatusInternalServerError, "internal_error", ""}
	}
}

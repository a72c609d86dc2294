package otlp

import (
	"strings"

	"github.com/gofiber/fiber/v2"
	logs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/body"
)

// Keeper appends events to the journal; capture.HTTP is one.
type Keeper interface {
	Keep(c *fiber.Ctx, project auth.Project, b capture.Batch) error
}

// HTTP serves the endpoints of OpenTelemetry.
type HTTP struct {
	keeper     Keeper
	eventBytes int // the largest event
	router     *web.Router
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the endpoints. An event of more than eventBytes bytes is rejected.
func NewHTTP(k Keeper, eventBytes int) *HTTP { return &HTTP{keeper: k, eventBytes: eventBytes} }

// Routes registers the paths.
func (h *HTTP) Routes(g *web.Router) {
	h.router = g
	g.Public(fiber.MethodPost, "/i/v1/logs", h.logs)
	g.Public(fiber.MethodPost, "/i/v1/traces", func(c *fiber.Ctx) error { return h.spans(c, false) })
	g.Public(fiber.MethodPost, "/i/v0/ai/otel", func(c *fiber.Ctx) error { return h.spans(c, true) })
	g.Public(fiber.MethodPost, "/i/v1/metrics", h.metrics)
	g.Public(fiber.MethodPost, "/i/v1/logs/datadog", h.datadog)
	g.Public(fiber.MethodPost, "/i/v1/logs/datadog/:token", h.datadog)
}

func (h *HTTP) logs(c *fiber.Ctx) error {
	req := new(logs.ExportLogsServiceRequest)
	return h.export(c, req, func(b *batch) { b.addLogs(req) }, func(rejected int64, message string) proto.Message {
		out := new(logs.ExportLogsServiceResponse)
		if rejected > 0 {
			out.PartialSuccess = &logs.ExportLogsPartialSuccess{RejectedLogRecords: rejected, ErrorMessage: message}
		}
		return out
	})
}

func (h *HTTP) spans(c *fiber.Ctx, ai bool) error {
	req := new(trace.ExportTraceServiceRequest)
	return h.export(c, req, func(b *batch) { b.addSpans(req, ai) }, func(rejected int64, message string) proto.Message {
		out := new(trace.ExportTraceServiceResponse)
		if rejected > 0 {
			out.PartialSuccess = &trace.ExportTracePartialSuccess{RejectedSpans: rejected, ErrorMessage: message}
		}
		return out
	})
}

func (h *HTTP) metrics(c *fiber.Ctx) error {
	req := new(metrics.ExportMetricsServiceRequest)
	return h.export(c, req, func(b *batch) { b.addMetrics(req) }, func(rejected int64, message string) proto.Message {
		out := new(metrics.ExportMetricsServiceResponse)
		if rejected > 0 {
			out.PartialSuccess = &metrics.ExportMetricsPartialSuccess{RejectedDataPoints: rejected, ErrorMessage: message}
		}
		return out
	})
}

// export serves an export request: it decodes the body into req, builds the events
// with add, and answers with what response returns.
func (h *HTTP) export(c *fiber.Ctx, req proto.Message, add func(*batch), response func(int64, string) proto.Message) error {
	f := formOf(c)
	project, raw, limits, err := h.receive(c, keyOf(c))
	b := newBatch(h.eventBytes, limits)
	f.json = f.json || len(raw) > 0 && raw[0] == '{' // no message of protobuf begins so
	if err == nil && len(raw) > 0 {
		err = decode(raw, f.json, req, limits)
	}
	if err == nil {
		add(b)
		err = h.keep(c, project, b)
	}
	if err != nil {
		return f.fail(c, err)
	}
	return f.answer(c, response(b.rejected, b.reason))
}

// receive authenticates a request and returns its body. A large request occupies
// a slot for large requests afterwards, until keep or the answer.
func (h *HTTP) receive(c *fiber.Ctx, key string) (auth.Project, []byte, body.Limits, error) {
	limits := h.router.Limits()
	limits.Memory = web.Memory(c)
	if key == "" {
		return auth.Project{}, nil, limits, fault.New(fault.Unauthenticated, "invalid_api_key", "API key not provided. Send the key of your project as bearer token, or as token in the query.")
	}
	project, err := h.router.ProjectOf(c, key, c.Query("project_id"))
	if err != nil {
		return project, nil, limits, err
	}
	raw, err := web.Plain(c, limits)
	if err == nil {
		err = limits.Memory.StartProcessing()
	}
	return project, raw, limits, err
}

// keep appends the events. Those over the quota of the project are rejected.
func (h *HTTP) keep(c *fiber.Ctx, project auth.Project, b *batch) error {
	if b.err != nil {
		return b.err
	}
	web.Memory(c).EndProcessing()
	err := h.keeper.Keep(c, project, capture.Batch{Items: b.items(), Count: b.count})
	if capture.IsOverQuota(err) {
		b.rejected += int64(b.count)
		b.reason = "The project has sent as many events as it may."
		return nil
	}
	return err
}

// datadog serves the intake of Datadog's agents.
func (h *HTTP) datadog(c *fiber.Ctx) error {
	key := web.Param(c, "token")
	for _, other := range []string{keyOf(c), c.Get("DD-API-KEY")} {
		if key == "" {
			key = other
		}
	}
	project, raw, limits, err := h.receive(c, key)
	if err != nil {
		return err
	}
	query := map[string]string{}
	for name, value := range c.Queries() {
		switch name {
		case "token", "api_key", "project_id", "dd-api-key":
		default:
			query[strings.Clone(name)] = strings.Clone(value)
		}
	}
	b := newBatch(h.eventBytes, limits)
	if err := b.addDatadog(raw, query, limits); err != nil {
		return err
	}
	if err := h.keep(c, project, b); err != nil {
		return err
	}
	return web.JSON(c, map[string]string{})
}

// keyOf returns the key of a request: a bearer token, or in the query.
func keyOf(c *fiber.Ctx) string {
	scheme, token, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if strings.EqualFold(scheme, "bearer") && strings.TrimSpace(token) != "" {
		return strings.TrimSpace(token)
	}
	if token := c.Query("token"); token != "" {
		return token
	}
	return c.Query("api_key")
}

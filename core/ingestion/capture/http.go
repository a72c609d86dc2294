package capture

import (
	"sync"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/budget"
)

// HTTP serves the endpoints that clients send events to.
type HTTP struct {
	log        Log
	records    sync.Pool // of *recordBuffer
	metrics    *Metrics
	logger     *zap.Logger
	router     *web.Router
	validators *validatorPool
	meter      *Meter
	budget     *budget.Budget // the share of capture; nil: all
	maxItems   int
	locator    Locator  // nil: events have no location
	visitors   Visitors // nil: visitors without cookies are not told apart
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the endpoints, with the default limits of an event, without a
// memory budget of their own, a bound for items and quotas.
func NewHTTP(journal Appender, m *Metrics, logger *zap.Logger) *HTTP {
	h := &HTTP{metrics: m, logger: logger.Named("ingestion"), validators: newValidatorPool(event.DefaultLimits())}
	return h.WithLog(single{journal})
}

// WithLog makes the endpoints append to a log instead of the journal of one node. They
// divide each request by the partitions of its events.
func (h *HTTP) WithLog(l Log) *HTTP {
	h.log = l
	n := l.Partitions()
	h.records.New = func() any { return newRecordBuffer(n) }
	return h
}

// WithLimits sets the limits by which results are computed: those of the
// pipeline.
func (h *HTTP) WithLimits(l event.Limits) *HTTP {
	h.validators = newValidatorPool(l)
	return h
}

// WithBudget bounds the bytes of requests in memory on their way to the journal,
// within the budget of the server. Beyond it a request fails with Unavailable. 0
// is no bound of its own.
func (h *HTTP) WithBudget(bytes int) *HTTP {
	h.budget = budget.New(bytes)
	return h
}

// WithMaxItems bounds the items of a request. A larger one fails with TooLarge;
// client libraries send it again in parts. 0 is no bound.
func (h *HTTP) WithMaxItems(n int) *HTTP {
	h.maxItems = n
	return h
}

// WithMeter sets the meter that enforces quotas.
func (h *HTTP) WithMeter(m *Meter) *HTTP {
	h.meter = m
	return h
}

// capturePaths are the equivalent endpoints of all client versions. An event
// sent to /engage/ needs no name.
var capturePaths = [...]string{"/capture", "/batch", "/e", "/i/v0/e", "/i/v0/ai/batch", "/track", "/engage"}

// Routes registers the paths.
func (h *HTTP) Routes(g *web.Router) {
	h.router = g
	for _, path := range capturePaths {
		name := ""
		if path == "/engage" {
			name = "$identify"
		}
		handler := func(c *fiber.Ctx) error { return h.capture(c, name) }
		g.Public(fiber.MethodPost, path, handler)
		g.Public(fiber.MethodGet, path, handler)
	}
	for _, path := range v1Paths {
		g.Public(fiber.MethodPost, path, h.captureV1)
	}
}

package ingestion

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/web"
)

// Appender is the journal as the accept path needs it: Append returns when the
// data is on disk, or fails with Unavailable.
type Appender interface {
	Append(ctx context.Context, data []byte) (seq uint64, err error)
}

// HTTP serves the paths on which events come in.
type HTTP struct {
	journal  Appender
	metrics  *Metrics
	log      *zap.Logger
	gate     *web.Router
	decoders *decoders
	meter    *Meter
	budget   budget
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the paths, with the default limits of an event.
func NewHTTP(journal Appender, m *Metrics, log *zap.Logger) *HTTP {
	return &HTTP{journal: journal, metrics: m, log: log.Named("ingestion"), decoders: newDecoders(event.DefaultLimits())}
}

// WithLimits judges events by other limits than the default ones: those the
// worker applies.
func (h *HTTP) WithLimits(l event.Limits) *HTTP {
	h.decoders = newDecoders(l)
	return h
}

// WithBudget bounds how many bytes of requests may be in memory on their way to
// the journal; what is beyond is refused for a moment. 0 is no bound.
func (h *HTTP) WithBudget(bytes int) *HTTP {
	h.budget.most = int64(bytes)
	return h
}

// WithMeter has a meter say which projects have sent as much as they may.
func (h *HTTP) WithMeter(m *Meter) *HTTP {
	h.meter = m
	return h
}

// capturePaths are the names under which clients of all ages send events. They
// are one and the same, but that an event sent to /engage/ needs no name.
var capturePaths = [...]string{"/capture", "/batch", "/e", "/i/v0/e", "/track", "/engage"}

// Routes registers the paths.
func (h *HTTP) Routes(g *web.Router) {
	h.gate = g
	for _, path := range capturePaths {
		name := ""
		if path == "/engage" {
			name = "$identify"
		}
		handler := func(c *fiber.Ctx) error { return h.capture(c, name) }
		g.Public(fiber.MethodPost, path, handler)
		g.Public(fiber.MethodGet, path, handler)
	}
	g.Public(fiber.MethodPost, v1Path, h.captureV1)
}

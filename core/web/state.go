package web

import (
	"sync"
	"time"
	"unsafe"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/tracing"
	"github.com/guidonhq/guidon/core/web/body"
	"github.com/guidonhq/guidon/core/web/budget"
	"github.com/guidonhq/guidon/core/web/request"
)

// requestState is the state of one request inside the server. It is a user
// value of the request. fasthttp closes it after the answer is written, also
// after a panic or a lost connection; that returns the buffers of the body to
// their pool and its memory to the budget.
type requestState struct {
	route     *route
	id        string
	start     time.Time
	project   int64
	principal caller // for the log
	cause     error  // of a failure, for the log only
	code      string // of a failure, as answered
	stack     string // of a panic
	span      *tracing.Span

	memory    budget.Account // pays for everything below
	wire      *budget.Buffer // of a large body
	received  bool           // receiveBody has run
	bodyErr   error          // of receiveBody
	body      *body.Decoder
	logFields [16]zap.Field
}

type stateKey struct{}

var (
	statePool       = sync.Pool{New: func() any { return &requestState{body: body.NewDecoder()} }}
	headerRequestID = []byte("X-Request-Id")
)

// stateOf returns the state of the request, and creates it on the first call.
func stateOf(c *fiber.Ctx) *requestState {
	if s, ok := c.Context().UserValue(stateKey{}).(*requestState); ok {
		return s
	}
	s := statePool.Get().(*requestState)
	c.Context().SetUserValue(stateKey{}, s)
	return s
}

func routeOf(c *fiber.Ctx) *route { return stateOf(c).route }

// Close releases the buffers of the request. The HTTP server calls it when it
// clears the request; it never fails.
func (s *requestState) Close() error {
	s.body.Release()
	if s.wire != nil {
		s.wire.Release()
	}
	s.memory.Release()
	*s = requestState{body: s.body}
	statePool.Put(s)
	return nil
}

// RequestID returns the id of the request in the log: the client's X-Request-Id
// if it has at most 128 letters, digits and ._:-, else a random one. Clients
// repeat ids: it identifies a log line, not an event. The string may be kept.
func RequestID(c *fiber.Ctx) string {
	if s := stateOf(c); s.id != "" {
		return s.id
	}
	return requestID(c)
}

func requestID(c *fiber.Ctx) string {
	return request.ID(c.Request().Header.PeekBytes(headerRequestID))
}

// NewRequestID returns a random id for a request, which is unique and not secret.
func NewRequestID() (id [16]byte) { return request.NewID() }

func unsafeBytes(s string) []byte  { return unsafe.Slice(unsafe.StringData(s), len(s)) }
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

package web

import (
	"encoding/hex"
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/web/body"
)

// requestState is the state of one request inside the server. It is a user
// value of the request. fasthttp closes it after the answer is written; that
// returns the buffers of a decoded body to their pool.
type requestState struct {
	route   *route
	id      string
	start   time.Time
	project int64
	cause   error  // of a failure, for the log only
	code    string // of a failure, as answered
	stack   string // of a panic

	body      *body.Decoder
	logFields [10]zap.Field
}

type stateKey struct{}

var (
	statePool           = sync.Pool{New: func() any { return &requestState{body: body.NewDecoder()} }}
	headerRequestID     = []byte("X-Request-Id")
	headerAuthorization = []byte("Authorization")
)

// stateOf returns the state of the request, and creates it on the first call.
func stateOf(c *fiber.Ctx) *requestState {
	if v, ok := c.Context().UserValue(stateKey{}).(*requestState); ok {
		return v
	}
	v := statePool.Get().(*requestState)
	c.Context().SetUserValue(stateKey{}, v)
	return v
}

func routeOf(c *fiber.Ctx) *route { return stateOf(c).route }

// Close releases the buffers of the request. The HTTP server calls it when it
// clears the request; it never fails.
func (s *requestState) Close() error {
	s.body.Release()
	*s = requestState{body: s.body}
	statePool.Put(s)
	return nil
}

// RequestID returns the id under which the request is in the log: the one the
// client sent in X-Request-Id when it is at most 128 letters, digits and
// ._:-, one made here otherwise. Clients repeat theirs: it identifies a line
// in a log, never an event. The string may be kept.
func RequestID(c *fiber.Ctx) string {
	if v := stateOf(c); v.id != "" {
		return v.id
	}
	return requestID(c)
}

func requestID(c *fiber.Ctx) string {
	if given := c.Request().Header.PeekBytes(headerRequestID); saneID(given) {
		return string(given)
	}
	var raw [16]byte
	hi, lo := rand.Uint64(), rand.Uint64()
	for i := range 8 {
		raw[i], raw[8+i] = byte(hi>>(8*i)), byte(lo>>(8*i))
	}
	return hex.EncodeToString(raw[:])
}

func saneID(id []byte) bool {
	if len(id) == 0 || len(id) > 128 {
		return false
	}
	for _, b := range id {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '.', b == '_', b == ':', b == '-':
		default:
			return false
		}
	}
	return true
}

func unsafeBytes(s string) []byte  { return unsafe.Slice(unsafe.StringData(s), len(s)) }
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

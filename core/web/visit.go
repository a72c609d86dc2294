package web

import (
	"encoding/hex"
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"go.uber.org/zap"
)

// visit is what the gate remembers of one request from its first byte to its
// last. It hangs on the request as a user value and closes itself after the
// answer has been written, which is when the buffers of a decoded body go
// back to where they came from.
type visit struct {
	route   *route
	id      string
	start   time.Time
	project int64
	cause   error  // why it failed, for the log only
	code    string // how the failure was called in the answer
	stack   string // where it panicked

	payload Payload
	form    *fasthttp.Args
	blocks  []*block
	fields  [10]zap.Field
}

type visitKey struct{}

var (
	visits          = sync.Pool{New: func() any { return &visit{form: new(fasthttp.Args)} }}
	headerRequestID = []byte("X-Request-Id")
)

// visitOf returns the visit of the request, a new one when it has none yet.
func visitOf(c *fiber.Ctx) *visit {
	if v, ok := c.Context().UserValue(visitKey{}).(*visit); ok {
		return v
	}
	v := visits.Get().(*visit)
	c.Context().SetUserValue(visitKey{}, v)
	return v
}

func routeOf(c *fiber.Ctx) *route { return visitOf(c).route }

// Close gives everything back. The HTTP server calls it when it clears the
// request; it never fails.
func (v *visit) Close() error {
	for i, b := range v.blocks {
		b.release()
		v.blocks[i] = nil
	}
	form := v.form
	if v.payload.form != nil && len(form.Peek("data")) > keptBytes {
		form = new(fasthttp.Args)
	}
	form.Reset()
	*v = visit{form: form, blocks: v.blocks[:0]}
	visits.Put(v)
	return nil
}

// RequestID returns the id under which the request is in the log: the one the
// client sent in X-Request-Id when it is at most 128 letters, digits and
// ._:-, one made here otherwise. Clients repeat theirs: it identifies a line
// in a log, never an event. The string may be kept.
func RequestID(c *fiber.Ctx) string {
	if v := visitOf(c); v.id != "" {
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

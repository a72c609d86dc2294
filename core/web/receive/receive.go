// Package receive receives the bodies of requests.
//
// The HTTP library calls a handler after the headers and the first 8 KiB of a
// body (StreamRequestBody). Body receives the rest in steps that the account of
// the request has paid for, so that neither an announced length nor many slow
// uploads take memory that the server does not have. A request whose body stays
// unread, because it was rejected before, ends its connection (Finish): its rest
// would be taken for the next request.
package receive

import (
	"errors"
	"io"
	"net"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/web/budget"
	"github.com/guidonhq/guidon/core/web/listener"
)

// prefetched is the size of a body that the HTTP library has received before it
// calls a handler.
const prefetched = 8 << 10

func init() {
	// A buffer in the pool of the HTTP library is not counted.
	fasthttp.SetBodySizePoolLimit(64<<10, 1<<20)
}

// Body receives the body of ctx.Request, of at most limit bytes, while a pays for
// each step; a client that sends slowly has taken what it has sent, not what it
// has announced. Afterwards Request.Body returns the body. The buffer, which may
// be nil, has to be released after the answer.
//
// It fails with budget.ErrTooLarge, with Unavailable, with an error about the end
// of the input if the client ends too early, and with the errors of the
// connection. After a failure the body is empty and the connection closes after
// the answer.
func Body(ctx *fasthttp.RequestCtx, a *budget.Account, limit int) (*budget.Buffer, error) {
	b, err := read(ctx, a, limit)
	if err != nil {
		abandon(ctx, StatusOf(err) != fasthttp.StatusRequestTimeout)
	}
	return b, err
}

func read(ctx *fasthttp.RequestCtx, a *budget.Account, limit int) (*budget.Buffer, error) {
	req := &ctx.Request
	n := req.Header.ContentLength()
	if !req.IsBodyStream() {
		n = len(req.Body())
	}
	switch {
	case n > limit:
		return nil, budget.ErrTooLarge
	case !req.IsBodyStream():
		return nil, a.Take(n)
	case n >= 0 && n <= prefetched:
		err := a.Take(n)
		if err == nil {
			_ = req.Body() // moves the bytes out of the stream
		}
		return nil, err
	}
	return readStream(ctx, a, n, limit)
}

func readStream(ctx *fasthttp.RequestCtx, a *budget.Account, n, limit int) (*budget.Buffer, error) {
	b, err := budget.NewBuffer(a, n)
	if err != nil {
		return nil, err
	}
	err = b.ReadBody(ctx.Request.BodyStream(), n, limit)
	if err == nil && n < 0 && endOfInput(ctx) {
		err = io.ErrUnexpectedEOF // the library takes a closed connection for the last chunk
	}
	if err != nil {
		b.Release()
		return nil, err
	}
	ctx.Request.SetBodyRaw(b.B)
	return b, nil
}

// Finish closes the connection after a request whose body nothing has received.
func Finish(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		next(ctx)
		if !ctx.Request.IsBodyStream() {
			return
		}
		if n := ctx.Request.Header.ContentLength(); n >= 0 && n <= prefetched {
			_ = ctx.Request.CloseBodyStream() // it has arrived
			return
		}
		abandon(ctx, true)
	}
}

// abandon drops a body that is still on its way.
func abandon(ctx *fasthttp.RequestCtx, drain bool) {
	ctx.Request.ResetBody()
	ctx.SetConnectionClose()
	if c := Conn(ctx); c != nil {
		c.DrainOnClose(drain)
	}
}

// Conn returns the connection of a request, nil if it is not of the listener.
func Conn(ctx *fasthttp.RequestCtx) *listener.Conn {
	conn := ctx.Conn()
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	c, _ := conn.(*listener.Conn)
	return c
}

// endOfInput reports whether the client has closed its side of the connection.
func endOfInput(ctx *fasthttp.RequestCtx) bool {
	c := Conn(ctx)
	return c != nil && c.Ended()
}

// StatusOf returns the HTTP status for a request that could not be read.
func StatusOf(err error) int {
	netErr, isNet := errors.AsType[net.Error](err)
	small := new(fasthttp.ErrSmallBuffer)
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return fasthttp.StatusRequestEntityTooLarge
	case errors.As(err, &small):
		return fasthttp.StatusRequestHeaderFieldsTooLarge
	case isNet && netErr.Timeout():
		return fasthttp.StatusRequestTimeout
	}
	return fasthttp.StatusBadRequest
}

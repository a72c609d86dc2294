package web_test

import (
	"bytes"
	"cmp"
	"compress/gzip"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/web"
)

// sent is a request as a client library sends it.
type sent struct {
	method, query, kind, encoding string
	body                          []byte
}

var limits = web.Limits{InflatedBytes: 1 << 20, Depth: 64}

var bare = fiber.New(fiber.Config{DisablePreParseMultipartForm: true})

// request makes a Fiber context that holds s. Release it after use.
func request(s sent) *fiber.Ctx {
	r := new(fasthttp.RequestCtx)
	r.Request.Header.SetMethod(cmp.Or(s.method, fiber.MethodPost))
	r.Request.SetRequestURI("/capture/?" + s.query)
	if s.kind != "" {
		r.Request.Header.SetContentType(s.kind)
	}
	if s.encoding != "" {
		r.Request.Header.Set("Content-Encoding", s.encoding)
	}
	r.Request.SetBody(s.body)
	return bare.AcquireCtx(r)
}

func release(c *fiber.Ctx) {
	c.Context().Request.Reset()
	bare.ReleaseCtx(c)
}

func gz(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

const form = "application/x-www-form-urlencoded"

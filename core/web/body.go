package web

import (
	"bytes"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/valyala/fasthttp"
)

// Payload is a request of a client library with its wrapping taken off.
// Everything in it is good until the handler returns; copy what you keep.
type Payload struct {
	// JSON is the body as JSON text. It is the request body itself when that
	// was plain JSON. Unless Limits.Unchecked was set it is valid JSON in
	// valid UTF-8, nests no deeper than allowed, and holds neither an escaped
	// NUL nor half a surrogate pair.
	JSON []byte
	// SentAt is the client's clock when it sent the request, as the query (or
	// the form) says it in _ or sent_at; the zero time when it does not. A
	// sent_at inside the JSON is not read here.
	SentAt time.Time
	// Beacon is true for ?beacon=1: the client does not look at the answer,
	// and expects 204.
	Beacon bool
	// Compression is how the JSON was wrapped: gzip, deflate, br, zstd, lz64,
	// base64, or empty for not at all. Of several layers it is the compressing
	// one.
	Compression string

	query *fasthttp.Args
	form  *fasthttp.Args // nil when the body was no form
}

// Query returns a parameter of the query, the empty string when it is not
// there.
func (p *Payload) Query(name string) string { return peek(p.query, name) }

// Form returns a field of a form body, the empty string when it is not there.
func (p *Payload) Form(name string) string { return peek(p.form, name) }

// Value returns a field of the form or else a parameter of the query.
func (p *Payload) Value(name string) string {
	if s := p.Form(name); s != "" {
		return s
	}
	return p.Query(name)
}

func peek(a *fasthttp.Args, name string) string {
	if a == nil {
		return ""
	}
	return unsafeString(a.Peek(name))
}

// Limits is how far Body may go.
type Limits struct {
	InflatedBytes int    // the largest body after decompression
	Depth         int    // how deep the JSON may nest
	Malformed     string // the code of a body that cannot be read; empty means invalid_payload
	Unchecked     bool   // leave the text as the client sent it: the caller's own reader mends and refuses
}

// Limits returns what the operator has chosen.
func (g *Router) Limits() Limits {
	return Limits{InflatedBytes: g.cfg.InflatedBytes, Depth: g.cfg.JSONDepth}
}

// Body takes the wrapping off a request of a client library, of whatever age:
// GET with ?data=, forms with a data field, gzip by header, parameter or
// magic number, deflate, br and zstd by header, LZ-string by parameter,
// base64 of any padding and alphabet, twice if need be, CESU-8, no content
// type or the wrong one. See Payload for what comes out.
//
// It fails with Malformed no_data for an empty request, with Malformed and
// the code of the limits for a body that cannot be read or is no JSON, and
// with TooLarge for one that inflates past the limit.
func Body(c *fiber.Ctx, limits Limits) (*Payload, error) {
	v := visitOf(c)
	p := &v.payload
	*p = Payload{query: c.Request().URI().QueryArgs()}
	raw := p.pick(c, v)
	p.readQuery()
	if len(raw) == 0 {
		return nil, fault.New(fault.Malformed, "no_data", "No data found. Send it as the body of a POST request, or in the query parameter data.")
	}
	u := unwrapper{visit: v, payload: p, limits: limits, hint: p.hint(c)}
	text, err := u.unwrap(raw, contentEncoding(c))
	if err == nil && !limits.Unchecked {
		text, err = u.checked(text)
	}
	if err != nil {
		return nil, limits.name(err)
	}
	p.JSON = text
	return p, nil
}

// pick finds the bytes that carry the data: ?data=, the data field of a form,
// or the body as it is.
func (p *Payload) pick(c *fiber.Ctx, v *visit) []byte {
	if data := p.query.Peek("data"); len(data) > 0 {
		return data
	}
	body := c.Request().Body()
	kind := c.Request().Header.ContentType()
	switch {
	case len(kind) > 19 && bytes.EqualFold(kind[:19], multipartType):
		return p.pickMultipart(c, v, body)
	case looksLikeForm(body, isFormType(kind)):
		v.form.ParseBytes(body)
		p.form = v.form
		return v.form.Peek("data")
	}
	return body
}

func (p *Payload) pickMultipart(c *fiber.Ctx, v *visit, body []byte) []byte {
	m, err := c.MultipartForm()
	if err != nil {
		return body
	}
	v.form.Reset()
	for name, values := range m.Value {
		for _, s := range values {
			v.form.Add(name, s)
		}
	}
	p.form = v.form
	return v.form.Peek("data")
}

// readQuery reads what the client says about the request beside the data.
func (p *Payload) readQuery() {
	p.Beacon = p.Query("beacon") == "1"
	for _, name := range [...]string{"_", "sent_at"} {
		if s := p.Query(name); s != "" && p.SentAt.IsZero() {
			p.SentAt = clientClock(s)
		}
	}
	if p.SentAt.IsZero() && p.form != nil {
		if p.SentAt = clientClock(p.Form("sent_at")); p.SentAt.IsZero() {
			p.SentAt = clientClock(p.Form("_"))
		}
	}
}

// hint is the name of a compression that the client gives, as one of our own
// names, or empty when there is none that we know.
func (p *Payload) hint(c *fiber.Ctx) string {
	for _, s := range [...]string{p.Query("compression"), p.Form("compression"), contentEncoding(c)} {
		if h := knownHint(s); h != "" {
			return h
		}
	}
	return ""
}

func knownHint(name string) string {
	switch len(name) {
	case 0:
		return ""
	case 4, 3, 6, 7, 9:
	default:
		return ""
	}
	switch strings.ToLower(name) {
	case "gzip", "gzip-js", "x-gzip":
		return wrapGzip
	case "lz64", "lz-string":
		return wrapLZ
	case "base64", "b64":
		return wrapBase64
	}
	return ""
}

func contentEncoding(c *fiber.Ctx) string {
	return unsafeString(c.Request().Header.PeekBytes(headerContentEncoding))
}

// name gives err the code that the room wants its unreadable bodies to have.
func (l Limits) name(err error) error {
	f := fault.From(err)
	if f == nil || f.Kind != fault.Malformed || f.Code != "" {
		return err
	}
	code := l.Malformed
	if code == "" {
		code = "invalid_payload"
	}
	return fault.New(fault.Malformed, code, "Malformed request data: "+f.Detail).Because(err)
}

// Package body reads the request bodies of client libraries.
//
// Clients of many ages wrap the same JSON in many ways: gzip by header, by
// parameter or by its first bytes alone, deflate, br and zstd by header,
// LZ-string by parameter, base64 of any padding and alphabet, forms with a
// data field, GET with ?data=, and several of these inside each other. A
// Decoder removes the layers, one at a time, until JSON shows. It then checks
// the JSON in one pass and repairs what many clients get wrong: NaN and
// Infinity, CESU-8, lone surrogates, NUL, raw control characters. The result is
// JSON that every reader and every database behind it accepts.
//
// Each layer is bounded by Limits.InflatedBytes while it is decompressed, and
// the nesting of the JSON by Limits.Depth. The memory of every layer is taken
// from Limits.Memory in steps, before it is used: many requests at once fail
// with Unavailable instead of exhausting the process. Of a form only the fields
// that clients send are kept, and their number is limited. Buffers of usual size
// come from a pool and return to it with Decoder.Release; plain JSON is not
// copied.
//
// The package does not look for keys or projects and does not write answers;
// core/web does.
package body

import (
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/budget"
)

// Payload is the body of a request without its wrapping. Its bytes and strings
// are valid until the handler returns; copy what must live longer.
type Payload struct {
	// JSON is the body as JSON text. It is the request body itself if that
	// was plain JSON. Unless Limits.Unchecked is set it is valid JSON in
	// valid UTF-8, within the allowed depth, without escaped NUL and without
	// lone surrogates.
	JSON []byte
	// SentAt is the client's clock at sending, from the parameter _ or
	// sent_at of the query or the form; zero without one. A sent_at inside
	// the JSON is not read here.
	SentAt time.Time
	// Beacon is true for ?beacon=1: the client ignores the answer and expects
	// 204.
	Beacon bool
	// Compression names the wrapping of the JSON: gzip, deflate, br, zstd,
	// lz64, base64, or empty for none. Of several layers it is the compressing
	// one.
	Compression string

	query *fasthttp.Args
	form  form // empty unless the body was a form
}

// Query returns a parameter of the query, "" if it is missing.
func (p *Payload) Query(name string) string {
	if p.query == nil {
		return ""
	}
	return unsafeString(p.query.Peek(name))
}

// Form returns a field of a form body, "" if it is missing. It knows the fields
// that client libraries send.
func (p *Payload) Form(name string) string { return unsafeString(p.form.value(name)) }

// Value returns a field of the form or else a parameter of the query.
func (p *Payload) Value(name string) string {
	if s := p.Form(name); s != "" {
		return s
	}
	return p.Query(name)
}

// Limits bound the decoding of a body.
type Limits struct {
	InflatedBytes int    // maximum size after decompression
	Depth         int    // maximum nesting of the JSON
	Malformed     string // error code of an unreadable body; empty means invalid_payload
	Values        int    // maximum number of JSON values, for CheckValues; 0 means no limit
	Unchecked     bool   // leave the JSON as sent: the caller checks and sanitizes it

	// Memory pays for what the decoding needs; nil is unlimited. It must be
	// open until Decoder.Release.
	Memory *budget.Account
}

// Decoder decodes the body of one request. It owns the buffers of the Payload
// until Release. It is for one goroutine and may be reused after Release.
type Decoder struct {
	payload Payload
	memory  *budget.Account
	buffers []*budget.Buffer
}

// NewDecoder returns a Decoder without buffers.
func NewDecoder() *Decoder { return new(Decoder) }

// Decode removes the wrapping of a client library's request; see Payload for
// the result.
//
// It fails with Malformed no_data for an empty request, with Malformed and
// Limits.Malformed for a body that cannot be read or is not JSON, with TooLarge
// for one that inflates past the limit or has too many fields, and with
// Unavailable when Limits.Memory is used up.
func (d *Decoder) Decode(req *fasthttp.Request, limits Limits) (*Payload, error) {
	p := &d.payload
	*p = Payload{query: req.URI().QueryArgs()}
	d.memory = limits.Memory
	raw, err := d.selectData(req, limits)
	if err != nil {
		return nil, limits.withCode(err)
	}
	p.readSentAt()
	p.Beacon = p.Query("beacon") == "1"
	if len(raw) == 0 {
		return nil, fault.New(fault.Malformed, "no_data", "No data found. Send it as the body of a POST request, or in the query parameter data.")
	}
	encoding := contentEncoding(req)
	u := unwrapper{decoder: d, limits: limits, hint: p.compressionHint(encoding)}
	text, err := u.unwrap(raw, encoding)
	if err == nil && !limits.Unchecked {
		text, err = u.sanitize(text)
	}
	if err != nil {
		return nil, limits.withCode(err)
	}
	p.JSON = text
	return p, nil
}

// Inflate returns packed without a content encoding as a header names it. It
// fails with Unsupported for an unknown encoding, with Malformed for damaged
// data, with TooLarge past the limit and with Unavailable when Limits.Memory is
// used up. The result is valid until Release.
func (d *Decoder) Inflate(packed []byte, encoding string, limits Limits) ([]byte, error) {
	f := inflaterOf(encoding)
	if encoding == wrapGzip {
		f = gzipInflater
	}
	if f == nil {
		return nil, fault.Newf(fault.Unsupported, "unsupported_media_type", "Unsupported content encoding %q in request.", encoding)
	}
	d.memory = limits.Memory
	u := unwrapper{decoder: d, limits: limits}
	return u.inflate(packed, f)
}

// Release returns the buffers of the payload to their pool, and what was paid
// for them.
func (d *Decoder) Release() {
	for i, b := range d.buffers {
		b.Release()
		d.buffers[i] = nil
	}
	*d = Decoder{buffers: d.buffers[:0]}
}

// buffer returns an empty buffer for about size bytes, which Release returns.
func (d *Decoder) buffer(size int) (*budget.Buffer, error) {
	b, err := budget.NewBuffer(d.memory, size)
	if err == nil {
		d.buffers = append(d.buffers, b)
	}
	return b, err
}

// withCode gives err the code that the caller wants for unreadable bodies.
func (l Limits) withCode(err error) error {
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

func malformed(why string) error { return fault.New(fault.Malformed, "", why) }

func unsafeBytes(s string) []byte  { return unsafe.Slice(unsafe.StringData(s), len(s)) }
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

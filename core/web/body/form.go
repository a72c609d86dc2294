package body

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/budget"
)

var (
	headerContentEncoding = []byte("Content-Encoding")
	formType              = []byte("application/x-www-form-urlencoded")
	multipartType         = []byte("multipart/form-data")
)

func contentEncoding(req *fasthttp.Request) string {
	return unsafeString(req.Header.PeekBytes(headerContentEncoding))
}

// selectData returns the bytes that carry the data: ?data=, the data field of a
// form, or the whole body.
func (d *Decoder) selectData(req *fasthttp.Request, limits Limits) ([]byte, error) {
	if data := d.payload.query.Peek("data"); len(data) > 0 {
		return data, nil
	}
	body := req.Body()
	kind := req.Header.ContentType()
	switch {
	case len(kind) > len(multipartType) && bytes.EqualFold(kind[:len(multipartType)], multipartType):
		return d.selectMultipart(req, body, limits)
	case looksLikeForm(body, IsFormType(kind)):
		err := d.readForm(body)
		return d.payload.form.value("data"), err
	}
	return body, nil
}

// readForm keeps the known fields of a URL-encoded form. Of equal names the
// first one counts.
func (d *Decoder) readForm(body []byte) error {
	return EachField(body, MaxFields, func(name, value []byte) (err error) {
		slot := d.payload.form.slot(name)
		if slot == nil {
			return nil
		}
		*slot, err = d.unescape(value)
		return err
	})
}

// unescape returns the value of a field. It is copied only if it has escapes.
func (d *Decoder) unescape(value []byte) ([]byte, error) {
	if bytes.IndexByte(value, '%') < 0 && bytes.IndexByte(value, '+') < 0 {
		return value, nil
	}
	out, err := d.buffer(len(value))
	if err == nil {
		err = out.Grow(len(value), len(value))
	}
	if err != nil {
		return nil, err
	}
	for len(value) > 0 {
		var n int
		out.B, n = unescapeSome(out.B, value, budget.YieldBytes)
		value = value[n:]
		d.memory.Yield()
	}
	return out.B, nil
}

// selectMultipart keeps the known fields of a multipart form, which may be
// compressed as a whole. A body that is no such form is its own data.
func (d *Decoder) selectMultipart(req *fasthttp.Request, body []byte, limits Limits) ([]byte, error) {
	plain := body
	if encoding := contentEncoding(req); encoding != "" && isGzip(body) {
		var err error
		u := unwrapper{decoder: d, limits: limits}
		if plain, err = u.inflate(body, gzipInflater); err != nil {
			return nil, err
		}
	}
	parts := 0
	err := EachPart(plain, req.Header.MultipartFormBoundary(), func(p Part) error {
		parts++
		if slot := d.payload.form.slot(p.Name); slot != nil && p.FileName == "" {
			*slot = p.Value
		}
		return nil
	})
	if parts == 0 && fault.Is(err, fault.Malformed) {
		return body, nil
	}
	return d.payload.form.value("data"), err
}

// compressionHint returns the compression that the client names, as one of the
// wrap constants, or "" for none or an unknown one.
func (p *Payload) compressionHint(encoding string) string {
	for _, s := range [...]string{p.Query("compression"), p.Form("compression"), encoding} {
		if h := knownHint(s); h != "" {
			return h
		}
	}
	return ""
}

func knownHint(name string) string {
	switch len(name) {
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

// IsFormType reports whether a content type is that of a URL-encoded form.
func IsFormType(kind []byte) bool {
	return len(kind) >= len(formType) && bytes.EqualFold(kind[:len(formType)], formType)
}

// looksLikeForm reports whether b has a field of the forms of client libraries.
// Without the content type of a form only a leading data field counts; with it,
// JSON is still JSON (curl -d sends it so).
func looksLikeForm(b []byte, typed bool) bool {
	if !typed {
		return bytes.HasPrefix(b, []byte("data="))
	}
	if StartsJSON(b) || isGzip(b) {
		return false
	}
	head := b[:min(len(b), 128)]
	for _, name := range [...]string{"data=", "_=", "ip=", "compression=", "api_key=", "token="} {
		if bytes.HasPrefix(head, unsafeBytes(name)) || bytes.Contains(head, unsafeBytes("&"+name)) {
			return true
		}
	}
	return false
}

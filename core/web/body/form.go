package body

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
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
func (d *Decoder) selectData(req *fasthttp.Request) []byte {
	if data := d.payload.query.Peek("data"); len(data) > 0 {
		return data
	}
	body := req.Body()
	kind := req.Header.ContentType()
	switch {
	case len(kind) > 19 && bytes.EqualFold(kind[:19], multipartType):
		return d.selectMultipart(req, body)
	case looksLikeForm(body, IsFormType(kind)):
		d.form.ParseBytes(body)
		d.payload.form = d.form
		return d.form.Peek("data")
	}
	return body
}

func (d *Decoder) selectMultipart(req *fasthttp.Request, body []byte) []byte {
	m, err := req.MultipartForm()
	if err != nil {
		return body
	}
	d.form.Reset()
	for name, values := range m.Value {
		for _, s := range values {
			d.form.Add(name, s)
		}
	}
	d.payload.form = d.form
	return d.form.Peek("data")
}

// readSentAt reads the client's clock from the query, or else from the form.
func (p *Payload) readSentAt() {
	for _, name := range [...]string{"_", "sent_at"} {
		if s := p.Query(name); s != "" && p.SentAt.IsZero() {
			p.SentAt = parseClientClock(s)
		}
	}
	if p.SentAt.IsZero() && p.form != nil {
		if p.SentAt = parseClientClock(p.Form("sent_at")); p.SentAt.IsZero() {
			p.SentAt = parseClientClock(p.Form("_"))
		}
	}
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

// parseClientClock parses the time in a query: milliseconds since 1970, or seconds
// with at most eleven digits, or RFC 3339. It returns the zero time for anything
// else and for times before 2020, because browsers put arbitrary numbers in _ to
// bypass caches.
func parseClientClock(s string) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t.UTC()
	}
	for i := range len(s) {
		if s[i] == '.' {
			s = s[:i]
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || len(s) > 15 {
		return time.Time{}
	}
	if len(s) <= 11 {
		n *= 1000
	}
	if t := time.UnixMilli(n).UTC(); t.Year() >= 2020 {
		return t
	}
	return time.Time{}
}

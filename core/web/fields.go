package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/valyala/fasthttp"
)

// Fields is the body of a management request: the members of a JSON object,
// or the fields of a form, in the order in which they came. Of a name that is
// there more than once the last value counts.
//
// The getters (String, Bool, Int, ...) read one field each. The first thing
// that is wrong is remembered, with the name, code and sentence that clients
// of this protocol know; read all fields, in the order of the resource, and
// then ask Err once. After a failure getters go on returning values, so a
// handler needs no branch between them.
//
// Fields own their bytes: they may be kept. They are for one goroutine.
type Fields struct {
	names []string
	raw   map[string]json.RawMessage
	lists map[string][]string // all values of a form field
	form  bool
	path  string // what goes before a name in attr, with its underscores
	err   *error // shared with nested Fields
}

// Decode reads the body of a management request. JSON has to be an object (no
// body at all is an empty one) and is read strictly; forms, multipart or not,
// and gzip are understood too. A personal_api_key in the body is not a field.
//
// It fails with Malformed parse_error for what cannot be read, with
// Unsupported for another content type, with Invalid for JSON that is no
// object, and with TooLarge.
func Decode(c *fiber.Ctx, limits Limits) (*Fields, error) {
	body, err := plainBody(c, limits)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(string(c.Request().Header.ContentType()), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch {
	case startsJSON(body) && kind != "multipart/form-data":
	case kind == "application/x-www-form-urlencoded":
		return formFields(body), nil
	case kind == "multipart/form-data":
		return multipartFields(c)
	}
	if kind != "" && kind != fiber.MIMEApplicationJSON && kind != fiber.MIMEApplicationForm && !strings.HasSuffix(kind, "+json") && len(body) > 0 {
		return nil, fault.Newf(fault.Unsupported, "unsupported_media_type", "Unsupported media type %q in request.", kind)
	}
	return jsonFields(body, limits.Depth)
}

// plainBody returns the body without its content encoding.
func plainBody(c *fiber.Ctx, limits Limits) ([]byte, error) {
	body := c.Request().Body()
	encoding := strings.ToLower(contentEncoding(c))
	unpack := inflaterOf(encoding)
	switch {
	case encoding == "" || encoding == "identity":
		return body, nil
	case encoding == "gzip":
		unpack = gunzip
	case unpack == nil:
		return nil, fault.Newf(fault.Unsupported, "unsupported_media_type", "Unsupported content encoding %q in request.", encoding)
	}
	u := unwrapper{visit: visitOf(c), limits: limits}
	out, err := u.inflate(body, unpack)
	if fault.Is(err, fault.Malformed) {
		return nil, parseError(fault.From(err).Detail)
	}
	return out, err
}

func parseError(why string) error {
	return fault.New(fault.Malformed, "parse_error", "JSON parse error - "+why)
}

func newFields() *Fields {
	return &Fields{raw: map[string]json.RawMessage{}, err: new(error)}
}

func jsonFields(body []byte, depth int) (*Fields, error) {
	f := newFields()
	body = bytes.TrimPrefix(body, byteOrderMark)
	if len(bytes.TrimSpace(body)) == 0 {
		return f, nil
	}
	r := textReader{b: body, depth: depth}
	if !r.check() {
		return nil, parseError(r.problem())
	}
	body = bytes.Clone(bytes.TrimSpace(body))
	if body[0] != '{' {
		return nil, fault.Newf(fault.Invalid, "invalid_input", "Invalid data. Expected a dictionary, but got %s.", typeName(body))
	}
	f.split(body)
	f.drop(personalField)
	return f, nil
}

// split fills f with the members of object, which is known to be right.
func (f *Fields) split(object []byte) {
	r := textReader{b: object, depth: maxJSONDepth, mend: true, i: 1}
	for r.space(); !r.is('}'); r.space() {
		from := r.i
		r.str()
		name := unquote(object[from:r.i])
		r.space()
		r.is(':')
		r.space()
		from = r.i
		r.value()
		f.put(name, object[from:r.i:r.i])
		r.space()
		r.is(',')
	}
}

func (f *Fields) put(name string, value []byte) {
	if _, again := f.raw[name]; !again {
		f.names = append(f.names, name)
	}
	f.raw[name] = value
}

func (f *Fields) drop(name string) {
	if _, there := f.raw[name]; there {
		delete(f.raw, name)
		f.names = slices.DeleteFunc(f.names, func(n string) bool { return n == name })
	}
}

func formFields(body []byte) *Fields {
	var args fasthttp.Args
	args.ParseBytes(body)
	f := newFields()
	f.form, f.lists = true, map[string][]string{}
	for k, v := range args.All() {
		f.putText(string(k), string(v))
	}
	f.drop(personalField)
	return f
}

func multipartFields(c *fiber.Ctx) (*Fields, error) {
	m, err := c.MultipartForm()
	if err != nil {
		return nil, fault.New(fault.Malformed, "parse_error", "Multipart form parse error - the form is damaged.").Because(err)
	}
	f := newFields()
	f.form, f.lists = true, map[string][]string{}
	for name, values := range m.Value {
		for _, v := range values {
			f.putText(name, v)
		}
	}
	slices.Sort(f.names) // the parts of a form come out of a map
	f.drop(personalField)
	return f, nil
}

func (f *Fields) putText(name, value string) {
	f.lists[name] = append(f.lists[name], value)
	f.put(name, appendQuoted(nil, value))
}

// Names lists the fields in the order in which they came.
func (f *Fields) Names() []string { return slices.Clone(f.names) }

// Has reports whether the field is there, be it null.
func (f *Fields) Has(name string) bool {
	_, ok := f.raw[name]
	return ok
}

// Raw returns the field as JSON text, nil when it is not there. A field of a
// form is a JSON string.
func (f *Fields) Raw(name string) json.RawMessage { return f.raw[name] }

// Err returns the first thing that was wrong with a field that was read, an
// error of kind Invalid, or nil.
func (f *Fields) Err() error { return *f.err }

// Fail remembers that a field is wrong, unless another was before it. Use it
// for rules that the getters do not know.
func (f *Fields) Fail(name, code, detail string) {
	if *f.err == nil {
		*f.err = fault.Field(f.path+name, code, detail)
	}
}

func unquote(quoted []byte) string {
	var s string
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	_ = json.Unmarshal(quoted, &s) // the text has been checked
	return s
}

func appendQuoted(dst []byte, s string) []byte {
	q, _ := encode(s) // a string can always be encoded
	return append(dst, q...)
}

// typeName is what clients of this protocol know a JSON type as.
func typeName(raw []byte) string {
	switch raw[0] {
	case '{':
		return "dict"
	case '[':
		return "list"
	case '"':
		return "str"
	case 't', 'f':
		return "bool"
	case 'n':
		return "NoneType"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "float"
	}
	return "int"
}

func itoa[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

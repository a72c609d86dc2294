package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/web/body"
	"github.com/guidonhq/guidon/core/web/credential"
)

// Fields is the body of a management request: the members of a JSON object or the
// fields of a form, in order. For a repeated name the last value counts.
//
// The getters (String, Bool, Int, ...) read one field each. The first invalid
// field is kept, with the name, code and detail that clients of this protocol
// know. Read all fields, in the order of the resource, and then call Err once:
// getters return values also after a failure, so a handler needs no branches
// between them.
//
// Fields own their bytes and may be kept. They are for one goroutine.
type Fields struct {
	names []string
	raw   map[string]json.RawMessage
	lists map[string][]string // all values of a form field
	files map[string][]byte   // of a multipart form
	form  bool
	path  string // prefix of names in errors, with its underscores
	err   *error // shared with nested Fields
}

// Decode reads the body of a management request. JSON must be an object (an empty
// body is an empty object) and is parsed strictly; forms, multipart forms and
// compressed bodies are accepted, too. personal_api_key is not a field.
//
// It fails with Malformed parse_error for an unreadable body, with Unsupported for
// another content type, with Invalid for JSON that is not an object, and with
// TooLarge.
func Decode(c *fiber.Ctx, limits Limits) (*Fields, error) {
	limits.Memory, limits.Values = Memory(c), maxValues
	if err := limits.Memory.StartProcessing(); err != nil {
		return nil, err
	}
	defer limits.Memory.EndProcessing()
	raw, err := plainBody(c, limits)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(string(c.Request().Header.ContentType()), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch {
	case body.StartsJSON(raw) && kind != "multipart/form-data":
	case kind == "application/x-www-form-urlencoded":
		return formFields(raw, limits)
	case kind == "multipart/form-data":
		return multipartFields(raw, c.Request().Header.MultipartFormBoundary(), limits)
	}
	if kind != "" && kind != fiber.MIMEApplicationJSON && kind != fiber.MIMEApplicationForm && !strings.HasSuffix(kind, "+json") && len(raw) > 0 {
		return nil, fault.Newf(fault.Unsupported, "unsupported_media_type", "Unsupported media type %q in request.", kind)
	}
	return jsonFields(raw, limits)
}

// plainBody returns the body without its content encoding.
func plainBody(c *fiber.Ctx, limits Limits) ([]byte, error) {
	raw := c.Request().Body()
	encoding := strings.ToLower(string(c.Request().Header.Peek(fiber.HeaderContentEncoding)))
	if encoding == "" || encoding == "identity" {
		return raw, nil
	}
	out, err := stateOf(c).body.Inflate(raw, encoding, limits)
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

func jsonFields(raw []byte, limits Limits) (*Fields, error) {
	f := newFields()
	raw = bytes.TrimPrefix(raw, byteOrderMark)
	if len(bytes.TrimSpace(raw)) == 0 {
		return f, nil
	}
	if problem := jsontext.Problem(raw, limits.Depth); problem != "" {
		return nil, parseError(problem)
	}
	if err := limits.CheckValues(raw); err != nil {
		return nil, err
	}
	if err := limits.Memory.Take(len(raw)); err != nil {
		return nil, err
	}
	raw = bytes.Clone(bytes.TrimSpace(raw))
	if raw[0] != '{' {
		return nil, fault.Newf(fault.Invalid, "invalid_input", "Invalid data. Expected a dictionary, but got %s.", typeName(raw))
	}
	f.addMembers(raw)
	f.drop(credential.PersonalField)
	return f, nil
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// addMembers adds the members of a valid JSON object.
func (f *Fields) addMembers(object []byte) {
	jsontext.Members(object, func(name, value []byte) { f.put(unquote(name), value) })
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

func newForm() *Fields {
	f := newFields()
	f.form, f.lists, f.files = true, map[string][]string{}, map[string][]byte{}
	return f
}

// maxFormFields is the maximum number of fields of a form.
const maxFormFields = 10_000

func formFields(raw []byte, limits Limits) (*Fields, error) {
	f := newForm()
	if err := limits.Memory.Take(2 * len(raw)); err != nil {
		return nil, err
	}
	err := body.EachField(raw, maxFormFields, func(name, value []byte) error {
		if len(name)+len(value) > 0 {
			f.putText(string(name), string(body.AppendUnescaped(nil, value)))
		}
		return nil
	})
	f.drop(credential.PersonalField)
	return f, err
}

func multipartFields(raw, boundary []byte, limits Limits) (*Fields, error) {
	f := newForm()
	if err := limits.Memory.Take(2 * len(raw)); err != nil {
		return nil, err
	}
	err := body.EachPart(raw, boundary, func(p body.Part) error {
		if name := string(p.Name); p.FileName != "" {
			f.files[name] = p.Value
		} else {
			f.putText(name, string(p.Value))
		}
		return nil
	})
	if fault.Is(err, fault.Malformed) {
		return nil, fault.New(fault.Malformed, "parse_error", "Multipart form parse error - the form is damaged.").Because(err)
	}
	slices.Sort(f.names)
	f.drop(credential.PersonalField)
	return f, err
}

// File returns a file of a multipart form, nil if it was not sent. The bytes are
// valid until the handler returns.
func (f *Fields) File(name string) []byte { return f.files[name] }

func (f *Fields) putText(name, value string) {
	f.lists[name] = append(f.lists[name], value)
	f.put(name, jsontext.AppendString(nil, value))
}

// Names returns the names of the fields in order.
func (f *Fields) Names() []string { return slices.Clone(f.names) }

// Has reports whether the field was sent, also as null.
func (f *Fields) Has(name string) bool {
	_, ok := f.raw[name]
	return ok
}

// Raw returns the field as JSON text, nil if it was not sent. A field of a form is
// a JSON string.
func (f *Fields) Raw(name string) json.RawMessage { return f.raw[name] }

// Err returns the error of the first invalid field that was read, of kind Invalid,
// or nil.
func (f *Fields) Err() error { return *f.err }

// Fail marks a field as invalid, unless another one was marked before. It is for
// rules that the getters do not have.
func (f *Fields) Fail(name, code, detail string) {
	if *f.err == nil {
		*f.err = fault.Field(f.path+name, code, detail)
	}
}

// unquote returns the value of a JSON string that was checked before.
func unquote(quoted []byte) string {
	s, _ := jsontext.Unquote(string(quoted))
	return s
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

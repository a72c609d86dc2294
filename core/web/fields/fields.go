// Package fields reads the body of a management request field by field.
//
// A body is a JSON object or a form. Parse returns it as Fields, with one getter
// for each kind of value (String, Bool, Int, ...) and rules for their values
// (Required, Max, ...). The first invalid field is kept, with the name, code and
// detail that clients of this protocol know.
//
// Fields record what is read: Ignored returns the names of the fields that were
// sent and that no getter has asked for. A handler declares nothing, so a name
// that the server does not know cannot be missed, and a PATCH without any known
// field fails instead of changing nothing.
//
// The package does not know HTTP; core/web receives and decompresses the body.
package fields

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

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
// Fields has one getter for each kind of value.
type Fields struct {
	names []string
	raw   map[string]json.RawMessage
	lists map[string][]string // all values of a form field
	files map[string][]byte   // of a multipart form
	form  bool
	path  string // prefix of names in errors, with its underscores
	err   *error // shared with nested Fields

	read      map[string]bool // names that a getter has asked for
	nested    []*Fields       // that Sub and Items have returned
	needKnown bool            // see RequireKnown
}

// Content types of a body.
const (
	TypeJSON      = "application/json"
	TypeForm      = "application/x-www-form-urlencoded"
	TypeMultipart = "multipart/form-data"
)

// Parse reads a body of the content type kind, in lower case and without
// parameters. boundary is that of a multipart form. JSON must be an object (an
// empty body is an empty object) and is parsed strictly; kind does not matter then.
// personal_api_key is not a field.
//
// It fails with Malformed parse_error for an unreadable body, with Unsupported for
// another content type, with Invalid for JSON that is not an object, and with
// TooLarge.
func Parse(raw []byte, kind string, boundary []byte, limits body.Limits) (*Fields, error) {
	switch {
	case body.StartsJSON(raw) && kind != TypeMultipart:
	case kind == TypeForm:
		return formFields(raw, limits)
	case kind == TypeMultipart:
		return multipartFields(raw, boundary, limits)
	}
	if kind != "" && kind != TypeJSON && kind != TypeForm && !strings.HasSuffix(kind, "+json") && len(raw) > 0 {
		return nil, fault.Newf(fault.Unsupported, "unsupported_media_type", "Unsupported media type %q in request.", kind)
	}
	return jsonFields(raw, limits)
}

func parseError(why string) error {
	return fault.New(fault.Malformed, "parse_error", "JSON parse error - "+why)
}

func newFields() *Fields {
	return &Fields{raw: map[string]json.RawMessage{}, err: new(error), read: map[string]bool{}}
}

func jsonFields(raw []byte, limits body.Limits) (*Fields, error) {
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

func formFields(raw []byte, limits body.Limits) (*Fields, error) {
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

func multipartFields(raw, boundary []byte, limits body.Limits) (*Fields, error) {
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

// Names returns the names of the fields in order. The caller deals with all of
// them: none is reported by Ignored.
func (f *Fields) Names() []string {
	for _, name := range f.names {
		f.read[name] = true
	}
	return slices.Clone(f.names)
}

// Has reports whether the field was sent, also as null.
func (f *Fields) Has(name string) bool {
	f.read[name] = true
	_, ok := f.raw[name]
	return ok
}

// Raw returns the field as JSON text, nil if it was not sent. A field of a form is
// a JSON string.
func (f *Fields) Raw(name string) json.RawMessage {
	f.read[name] = true
	return f.raw[name]
}

// Err returns the error of the first invalid field that was read, of kind Invalid,
// or nil. After RequireKnown it also fails if fields were sent and none of them was
// read.
func (f *Fields) Err() error {
	if *f.err == nil && f.needKnown && len(f.names) > 0 && !slices.ContainsFunc(f.names, f.wasRead) {
		return fault.Newf(fault.Invalid, "unknown_fields", "None of the fields can be changed: %s.", abbreviated(f.names))
	}
	return *f.err
}

// RequireKnown makes Err fail if the body has fields and no getter has asked for
// any of them. It is for requests that change the sent fields of a resource.
func (f *Fields) RequireKnown() { f.needKnown = true }

func (f *Fields) wasRead(name string) bool { return f.read[name] }

// Ignored returns the names of fields that were sent and not read, those of nested
// objects as path__index__name.
func (f *Fields) Ignored() []string {
	var out []string
	for _, name := range f.names {
		if !f.read[name] {
			out = append(out, f.path+name)
		}
	}
	for _, n := range f.nested {
		out = append(out, n.Ignored()...)
	}
	return out
}

// abbreviated returns the first few names for a message.
func abbreviated(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

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

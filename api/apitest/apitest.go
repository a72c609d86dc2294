// Package apitest compares answers with the OpenAPI document in tests: the document
// must describe the status and schema of each answer and every name in it, and the
// documented paths must be those that the server has.
package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Document is an OpenAPI document to compare answers with. It is safe for concurrent
// use.
type Document struct {
	doc   *openapi3.T
	paths []string // fixed segments before parameters
}

// New reads and validates a document.
func New(data []byte) (*Document, error) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(data)
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	if err := doc.Validate(loader.Context); err != nil {
		return nil, fmt.Errorf("the document is not valid: %w", err)
	}
	d := &Document{doc: doc}
	for path := range doc.Paths.Map() {
		d.paths = append(d.paths, path)
	}
	slices.SortFunc(d.paths, func(a, b string) int { return strings.Compare(place(a), place(b)) })
	return d, nil
}

// place orders paths for matching by their text.
func place(path string) string { return strings.ReplaceAll(path, "{", "~") }

// Operations lists the documented operations as "METHOD /path/{parameter}".
func (d *Document) Operations() []string {
	var out []string
	for path, item := range d.doc.Paths.Map() {
		for method := range item.Operations() {
			out = append(out, method+" "+path)
		}
	}
	slices.Sort(out)
	return out
}

// Differences compares the served routes, "METHOD /path/:parameter", with the
// documented operations and describes those that are only in one of them.
func (d *Document) Differences(served []string) []string {
	var out []string
	documented := d.Operations()
	known := map[string]bool{}
	for _, s := range served {
		op := braced(s)
		known[op] = true
		if !slices.Contains(documented, op) {
			out = append(out, op+" is served but not documented")
		}
	}
	for _, op := range documented {
		if !known[op] {
			out = append(out, op+" is documented but not served")
		}
	}
	return out
}

func braced(route string) string {
	segments := strings.Split(route, "/")
	for i, s := range segments {
		if name, ok := strings.CutPrefix(s, ":"); ok {
			segments[i] = "{" + name + "}"
		}
		if s == "*" {
			segments[i] = "{path}"
		}
	}
	return strings.Join(segments, "/")
}

// Check compares an answer with the document and returns the first difference, nil
// if there is none. target is the path, with or without a query. A request without a
// documented operation must be refused with 404 or 405 and a documented error.
func (d *Document) Check(method, target string, status int, header http.Header, body []byte) error {
	op := d.operation(method, target)
	if op == nil {
		return d.refusal(method, target, status, body)
	}
	promised := op.Responses.Status(status)
	if promised == nil {
		promised = op.Responses.Default()
	}
	if promised == nil {
		return fmt.Errorf("%s %s: %s promises no answer %d", method, target, op.OperationID, status)
	}
	if method == http.MethodHead {
		return nil
	}
	if err := d.content(promised.Value.Content, header, body); err != nil {
		return fmt.Errorf("%s %s: answer %d of %s: %w", method, target, status, op.OperationID, err)
	}
	return nil
}

// operation returns the documented operation of a request; HEAD uses that of GET.
func (d *Document) operation(method, target string) *openapi3.Operation {
	path, _, _ := strings.Cut(target, "?")
	if path = strings.TrimRight(path, "/"); path == "" {
		path = "/"
	}
	for _, template := range d.paths {
		if !fits(template, path) {
			continue
		}
		item := d.doc.Paths.Value(template)
		if op := item.GetOperation(method); op != nil {
			return op
		}
		if method == http.MethodHead && item.Get != nil {
			return item.Get
		}
	}
	return nil
}

func fits(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && (!strings.HasPrefix(want[i], "{") || got[i] == "") {
			return false
		}
	}
	return true
}

func (d *Document) refusal(method, target string, status int, body []byte) error {
	if status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
		return fmt.Errorf("%s %s: answered %d but is not documented", method, target, status)
	}
	for _, name := range []string{"Error", "PublicError"} {
		if schema := d.doc.Components.Schemas[name]; schema != nil && validateJSON(schema, body) == nil {
			return nil
		}
	}
	return fmt.Errorf("%s %s: %d without the shape of an error: %s", method, target, status, body)
}

func (d *Document) content(promised openapi3.Content, header http.Header, body []byte) error {
	if len(promised) == 0 || len(body) == 0 {
		if len(promised) != 0 || len(body) != 0 {
			return fmt.Errorf("a body of %d bytes, %d content types promised", len(body), len(promised))
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("content type %q: %w", header.Get("Content-Type"), err)
	}
	media := promised[kind]
	switch {
	case media == nil:
		return fmt.Errorf("content type %s is not promised", kind)
	case kind != "application/json" || media.Schema == nil:
		return nil
	}
	return validateJSON(media.Schema, body)
}

// validateJSON validates a JSON text against the schema and returns the violations and the
// undeclared names.
func validateJSON(schema *openapi3.SchemaRef, body []byte) error {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	if err := accepts(schema, v); err != nil {
		return err
	}
	if names := undeclared(schema, v, ""); len(names) > 0 {
		return errors.New("not in the document: " + strings.Join(names, ", "))
	}
	return nil
}

func accepts(schema *openapi3.SchemaRef, v any) error {
	return schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020())
}

package ai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/jsontext"
)

// Bounds of a form.
const (
	maxParts   = 100
	maxDepth   = 100
	maxPath    = 200
	truncated  = " … (truncated)"
	truncatedP = "$ai_truncated_properties"
)

func malformed(detail string) error { return fault.New(fault.Malformed, "invalid_payload", detail) }

// blob is a value of a part.
type blob struct {
	path  string // below properties
	value json.RawMessage
}

// event is the event of a form.
type event struct {
	fields     map[string]json.RawMessage
	properties map[string]json.RawMessage
	tree       *object // of properties, with the blobs
	blobs      []blob
	parts      []part
	limit      int // bytes of the event
}

// part describes a part in the answer.
type part struct {
	Name        string `json:"name"`
	Length      int    `json:"length"`
	ContentType string `json:"content-type"`
}

// errTooLarge is the answer to an event that exceeds its limit without parts.
var errTooLarge = fault.New(fault.TooLarge, "event_too_large", "Request too large: the event is larger than an event can be, without its parts.")

// readForm reads the parts of a body that makes an event of at most limit bytes. It
// fails with Malformed and TooLarge.
func readForm(raw []byte, boundary string, limit int) (*event, error) {
	e := &event{limit: limit}
	r := multipart.NewReader(bytes.NewReader(raw), boundary)
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, malformed("The body is not a multipart form.")
		}
		if len(e.parts) == maxParts {
			return nil, fault.New(fault.TooLarge, "too_many_parts", "Request too large: it has too many parts.")
		}
		if p.Header.Get("Content-Encoding") != "" {
			return nil, fault.New(fault.Unsupported, "unsupported_encoding", "A part has an encoding of its own; compress the whole request.")
		}
		content, err := io.ReadAll(p)
		if err != nil {
			return nil, malformed("A part of the form ends too early.")
		}
		e.parts = append(e.parts, part{p.FormName(), len(content), p.Header.Get("Content-Type")})
		if err := e.add(p.FormName(), p.Header.Get("Content-Type"), content); err != nil {
			return nil, err
		}
	}
	if e.fields == nil {
		return nil, malformed("The part event is missing.")
	}
	return e, nil
}

// add adds a part.
func (e *event) add(name, contentType string, content []byte) error {
	switch path, isBlob := strings.CutPrefix(name, "event.properties."); {
	case name == "event":
		return e.object(content, &e.fields, "event")
	case name == "event.properties":
		return e.object(content, &e.properties, "event.properties")
	case isBlob && path != "" && len(path) <= maxPath:
		for _, b := range e.blobs {
			if b.path == path {
				return malformed("The part event.properties." + path + " occurs twice.")
			}
		}
		e.blobs = append(e.blobs, blob{path, valueOf(contentType, content)})
		return nil
	}
	return malformed("The part " + quote(name) + " is not known: parts are event, event.properties and event.properties.NAME.")
}

func (e *event) object(content []byte, into *map[string]json.RawMessage, name string) error {
	if *into != nil {
		return malformed("The part " + name + " occurs twice.")
	}
	content = bytes.TrimSpace(content)
	if len(content) > e.limit { // only values of parts are truncated
		return errTooLarge
	}
	content = jsontext.AppendClean(nil, content)
	if jsontext.Problem(content, maxDepth) != "" || json.Unmarshal(content, into) != nil || *into == nil {
		return malformed("The part " + name + " is not a JSON object.")
	}
	return nil
}

// valueOf returns the content of a part as JSON.
func valueOf(contentType string, content []byte) json.RawMessage {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if kind == "application/json" && jsontext.Problem(content, maxDepth) == "" {
		return jsontext.AppendClean(nil, bytes.TrimSpace(content))
	}
	if strings.HasPrefix(kind, "text/") || kind == "application/json" || utf8.Valid(content) {
		return quoted(strings.ToValidUTF8(string(content), "\ufffd"))
	}
	return quoted(base64.StdEncoding.EncodeToString(content))
}

// build returns the event as JSON of at most its limit, and the properties that were
// truncated for that. It fails with Malformed and TooLarge.
func (e *event) build() (text []byte, cut []string, err error) {
	if own, ok := e.fields["properties"]; ok {
		if e.properties != nil {
			return nil, nil, malformed("The event has properties, and so has a part.")
		}
		if json.Unmarshal(own, &e.properties) != nil {
			return nil, nil, malformed("The properties of the event are not an object.")
		}
	}
	if e.properties == nil {
		e.properties = map[string]json.RawMessage{}
	}
	var name string
	if json.Unmarshal(e.fields["event"], &name) != nil || !strings.HasPrefix(name, "$ai_") {
		return nil, nil, malformed("The name of the event must begin with $ai_.")
	}
	e.tree = newObject(e.properties, e.limit)
	for _, b := range e.blobs {
		if err := e.tree.put(b.path, b.value, maxNames); err != nil {
			return nil, nil, err
		}
	}
	if text, err = e.encode(); err != nil || len(text) <= e.limit {
		return text, nil, err
	}
	return e.truncate(len(text))
}

// truncate cuts the values of parts, the largest first, until the event of size bytes
// fits. It encodes the event again only when it should fit.
func (e *event) truncate(size int) (text []byte, cut []string, err error) {
	sort.SliceStable(e.blobs, func(i, j int) bool { return len(e.blobs[i].value) > len(e.blobs[j].value) })
	for i, b := range e.blobs {
		cut = append(cut, b.path)
		names, _ := json.Marshal(cut)
		// Escapes make a cut text longer than its source: a third is left of what may stay.
		excess := size - e.limit
		keep := max(0, (len(b.value)-excess-len(names)-64)/3)
		start := quoted(strings.ToValidUTF8(string(b.value[:keep]), "") + truncated)
		e.tree.replace(b.path, start, maxNames)
		size += len(start) - len(b.value)
		if size+len(names)+64 > e.limit && i < len(e.blobs)-1 {
			continue
		}
		e.tree.set(truncatedP, names)
		if text, err = e.encode(); err != nil || len(text) <= e.limit {
			return text, cut, err
		}
		size = len(text)
	}
	return nil, cut, errTooLarge
}

func (e *event) encode() ([]byte, error) {
	raw, err := e.tree.encode()
	if err != nil {
		return nil, malformed("The properties cannot be encoded.")
	}
	e.fields["properties"] = raw
	if raw, err = json.Marshal(e.fields); err != nil {
		return nil, malformed("The event cannot be encoded.")
	}
	return raw, nil
}

func quoted(s string) json.RawMessage { return jsontext.AppendString(nil, s) }

func quote(s string) string { return string(quoted(s[:min(len(s), 100)])) }

package notifications

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
)

// Facts are the data of a message.
type Facts struct {
	Site       string // base URL of links, without a trailing slash; "" makes none
	ProjectID  int64
	ActionID   int64
	ActionName string
	Event      *sdk.Event
	// Person is the properties of the event's person, a JSON object, or nil.
	Person []byte
	// Names are the person properties that can be the display name, best first.
	Names []string
	// Group returns the properties of a group by the name of its type, as the
	// event has it in $groups.
	Group func(kind, key string) []byte
}

// maxValue is the maximum length of one value in characters, maxMessage that
// of the message.
const (
	maxValue   = 500
	maxMessage = 4000
)

// Render fills in the template. It returns the segments of the message and the
// message as plain text. Event data is only ever the value of a segment, so
// that notifiers do not interpret it as markup.
func (t *Template) Render(f *Facts) (segments []sdk.Segment, plainText string) {
	var p fastjson.Parser
	event, _ := p.ParseBytes(f.Event.Properties) // nil: no properties
	var q fastjson.Parser
	person, _ := q.ParseBytes(f.Person)
	r := rendering{Facts: f, event: event, person: person}
	var out strings.Builder
	left := maxMessage
	for _, part := range t.parts {
		s := sdk.Segment{Kind: sdk.SegmentText, Value: part.text}
		if part.words != nil {
			s = r.token(part.words)
			s.Value = text.EllipsisChars(s.Value, maxValue)
		}
		if s.Value = text.EllipsisChars(s.Value, max(left, 1)); s.Value == "" {
			continue
		}
		if left -= len([]rune(s.Value)); left < 0 {
			break
		}
		segments = append(segments, s)
		out.WriteString(s.Value)
	}
	return segments, out.String()
}

// rendering is a message during Render.
type rendering struct {
	*Facts
	event, person *fastjson.Value
}

func plain(s string) sdk.Segment { return sdk.Segment{Kind: sdk.SegmentText, Value: s} }

// linked is a segment with a link, if there is a base URL.
func (r *rendering) linked(kind sdk.SegmentKind, s, href string) sdk.Segment {
	if href == "" {
		kind = sdk.SegmentBold
	}
	return sdk.Segment{Kind: kind, Value: s, Href: href}
}

func (r *rendering) token(words []string) sdk.Segment {
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	switch words[0] {
	case "action", "source":
		if second == "link" {
			return plain(r.actionURL())
		}
		return r.linked(sdk.SegmentLink, r.ActionName, r.actionURL())
	case "person":
		return r.personToken(words, second)
	case "user":
		if second == "browser" {
			return plain(value(r.event, []string{"$browser"}))
		}
		return r.linked(sdk.SegmentUser, r.Display(), r.PersonURL())
	case "event":
		return r.eventToken(words, second)
	}
	return r.groupToken(words)
}

func (r *rendering) personToken(words []string, second string) sdk.Segment {
	switch second {
	case "link":
		return plain(r.PersonURL())
	case "properties":
		return plain(value(r.person, words[2:]))
	}
	return r.linked(sdk.SegmentUser, r.Display(), r.PersonURL())
}

func (r *rendering) eventToken(words []string, second string) sdk.Segment {
	switch second {
	case "link":
		return plain(r.EventURL())
	case "uuid":
		return plain(r.Event.UUID)
	case "event", "name":
		return plain(r.Event.Name)
	case "timestamp":
		return plain(r.Event.Timestamp.UTC().Format(time.RFC3339Nano))
	case "distinct_id":
		return plain(r.Event.DistinctID)
	case "properties":
		return plain(value(r.event, words[2:]))
	}
	return r.linked(sdk.SegmentLink, r.Event.Name, r.EventURL())
}

// groupToken renders a group of the event, by the name of its type.
func (r *rendering) groupToken(words []string) sdk.Segment {
	if len(words) == 1 {
		return plain("NOT SUPPORTED")
	}
	kind := words[1]
	key := ""
	if groups := get(r.event, "$groups"); groups != nil {
		key = stringOf(get(groups, kind))
	}
	if key == "" {
		return plain("(event without '" + kind + "')")
	}
	href := ""
	if r.Site != "" {
		href = r.Site + "/project/" + number(r.ProjectID) + "/groups/" + url.PathEscape(kind) + "/" + url.PathEscape(key)
	}
	if len(words) == 2 {
		name := key
		if v := r.groupValue(kind, key, []string{"name"}); v != "undefined" {
			name = v
		}
		return r.linked(sdk.SegmentLink, name, href)
	}
	switch words[2] {
	case "link":
		return plain(href)
	case "properties":
		return plain(r.groupValue(kind, key, words[3:]))
	}
	return plain("")
}

func (r *rendering) groupValue(kind, key string, path []string) string {
	if r.Group == nil {
		return "undefined"
	}
	v, err := fastjson.ParseBytes(r.Group(kind, key))
	if err != nil {
		return "undefined"
	}
	return value(v, path)
}

// value is the text at the path; an absent value is "undefined", as in the
// first version.
func value(v *fastjson.Value, path []string) string {
	// A property may have dots in its name: the longest name that is there wins.
	for n := len(path); n > 0; n-- {
		inner := get(v, strings.Join(path[:n], "."))
		if inner == nil {
			continue
		}
		if n == len(path) {
			return stringOf(inner)
		}
		return value(inner, path[n:])
	}
	return "undefined"
}

// get is a field of an object, or nil.
func get(v *fastjson.Value, name string) *fastjson.Value {
	if v == nil || v.Type() != fastjson.TypeObject {
		return nil
	}
	return v.Get(name)
}

// stringOf is the value of a JSON string, the JSON of other types, and "" for
// nil.
func stringOf(v *fastjson.Value) string {
	switch {
	case v == nil:
		return ""
	case v.Type() == fastjson.TypeString:
		return string(v.GetStringBytes())
	}
	return string(v.MarshalTo(nil))
}

// Display is the display name of the person: the first of Names with a value,
// else the distinct id.
func (f *Facts) Display() string {
	person, _ := fastjson.ParseBytes(f.Person)
	for _, name := range f.Names {
		v := get(person, name)
		if v == nil || v.Type() == fastjson.TypeNull || v.Type() == fastjson.TypeFalse {
			continue
		}
		if s := strings.TrimSpace(stringOf(v)); s != "" {
			return s
		}
	}
	return strings.TrimSpace(f.Event.DistinctID)
}

func (f *Facts) project() string {
	if f.Site == "" {
		return ""
	}
	return f.Site + "/project/" + number(f.ProjectID)
}

func (f *Facts) actionURL() string {
	if f.Site == "" {
		return ""
	}
	return f.project() + "/action/" + number(f.ActionID)
}

// PersonURL is the URL of the person's page, or "".
func (f *Facts) PersonURL() string {
	if f.Site == "" {
		return ""
	}
	return f.project() + "/person/" + url.PathEscape(f.Event.DistinctID)
}

// EventURL is the URL of the event's page, or "".
func (f *Facts) EventURL() string {
	if f.Site == "" {
		return ""
	}
	return f.project() + "/events/" + f.Event.UUID + "/" + url.PathEscape(f.Event.Timestamp.UTC().Format(time.RFC3339Nano))
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

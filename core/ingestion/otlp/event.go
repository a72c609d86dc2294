package otlp

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // a name, not a secret
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	"github.com/google/uuid"
	common "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/guidonhq/guidon/core/web/body"
)

// properties are those of an event, by name.
type properties map[string]any

// addAttributes sets a property for each attribute.
func (p properties) addAttributes(list []*common.KeyValue) {
	for _, kv := range list {
		if v := plain(kv.GetValue()); v != nil && kv.GetKey() != "" {
			p[kv.GetKey()] = v
		}
	}
}

// set sets a property unless the value is empty.
func (p properties) set(name, value string) {
	if value != "" {
		p[name] = value
	}
}

// text returns a property that is a text, or "".
func (p properties) text(name string) string {
	s, _ := p[name].(string)
	return s
}

// first returns the first property with a text, or "".
func (p properties) first(names ...string) string {
	for _, name := range names {
		if s := p.text(name); s != "" {
			return s
		}
	}
	return ""
}

// plain returns a value as JSON can hold it; nil for none.
func plain(v *common.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_BoolValue:
		return v.BoolValue
	case *common.AnyValue_IntValue:
		return v.IntValue
	case *common.AnyValue_DoubleValue:
		return number(v.DoubleValue)
	case *common.AnyValue_BytesValue:
		return hex.EncodeToString(v.BytesValue)
	case *common.AnyValue_ArrayValue:
		out := make([]any, 0, len(v.ArrayValue.GetValues()))
		for _, e := range v.ArrayValue.GetValues() {
			out = append(out, plain(e))
		}
		return out
	case *common.AnyValue_KvlistValue:
		out := properties{}
		out.addAttributes(v.KvlistValue.GetValues())
		return out
	}
	return nil
}

// number returns a number that JSON can hold: a text for NaN and the infinities.
func number(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return f
}

// The attributes that name the person, and those that name the session, in their
// order.
var (
	personKeys = []string{
		"ai.telemetry.metadata.posthog_distinct_id", "ai.settings.context.posthog_distinct_id", "posthog.distinct_id", "posthogDistinctId",
		"user.id", "enduser.id",
	}
	sessionKeys = []string{"$ai_session_id", "gen_ai.conversation.id", "session.id", "sessionId"}
)

// item is an event on its way to capture.
type item struct {
	Event      string     `json:"event"`
	DistinctID string     `json:"distinct_id"`
	UUID       string     `json:"uuid"`
	Timestamp  string     `json:"timestamp,omitempty"`
	Properties properties `json:"properties"`
}

// namespace of the uuids and distinct ids that derive from content.
var namespace = uuid.MustParse("5d0c7a3e-8b0e-5c39-9a55-0d0f5f6c7b11")

// batch collects the events of a request as the JSON array of capture.
type batch struct {
	out      []byte
	count    int
	rejected int64
	reason   string
	limit    int              // bytes of one event
	seen     map[[20]byte]int // content of events without an id, with the times it occurred
	limits   body.Limits
	work     int   // bytes that were written, also for events that were rejected
	reserved int   // bytes of out that limits.Memory has paid for
	err      error // why the request is refused; nothing is added after it
}

// newBatch returns a batch for events of at most limit bytes. A few bytes of a request
// may stand for much: each record repeats the attributes of its resource. So the size
// of all events is bounded by limits, and their memory is paid for as it grows.
func newBatch(limit int, limits body.Limits) *batch {
	return &batch{out: []byte{'['}, limit: limit, seen: map[[20]byte]int{}, limits: limits}
}

// Bounds of the events of a request, as multiples of body.Limits.InflatedBytes.
const (
	maxOut  = 2
	maxWork = 4
)

// Sizes for the accounts of work and memory.
const (
	attributeBytes = 32        // of copying an attribute
	seenBytes      = 64        // of an entry of seen
	reserveBytes   = 256 << 10 // taken at once
)

// charge counts work, and reports whether there may be more.
func (b *batch) charge(bytes int) bool {
	b.work += bytes
	if most := b.limits.InflatedBytes; b.err == nil && most > 0 && b.work > maxWork*most {
		b.err = errTooMany
	}
	return b.err == nil
}

// reserve pays for more bytes of out, and reports whether they may be added.
func (b *batch) reserve(more int) bool {
	need := len(b.out) + more + seenBytes*len(b.seen)
	if most := b.limits.InflatedBytes; most > 0 && need > maxOut*most {
		b.err = errTooMany
	}
	if b.err == nil && need > b.reserved {
		more := max(need-b.reserved, reserveBytes)
		if b.err = b.limits.Memory.Take(2 * more); b.err == nil { // append doubles
			b.reserved += more
		}
	}
	return b.err == nil
}

// from returns a copy of the properties that events share, nil after an error.
func (b *batch) from(shared properties) properties {
	if !b.charge(len(shared) * attributeBytes) {
		return nil
	}
	return maps.Clone(shared)
}

// add adds an event. id identifies it; empty derives one from the content. trace
// is the trace of the event, as text.
func (b *batch) add(name string, p properties, nanos uint64, trace, id string) {
	it := item{Event: name, Properties: p}
	if nanos > 0 {
		it.Timestamp = time.Unix(int64(nanos/1e9), int64(nanos%1e9)).UTC().Format(time.RFC3339Nano)
	}
	if it.DistinctID = p.first(personKeys...); it.DistinctID == "" {
		it.DistinctID = uuid.NewSHA1(namespace, []byte(anonymous(p, trace))).String()
		p["$process_person_profile"] = false
	}
	p["$lib"] = orElse(p.text("$lib"), "opentelemetry")
	if id == "" {
		id = b.contentID(&it)
	}
	it.UUID = uuid.NewSHA1(namespace, []byte(name+id)).String()
	text, err := encode(it)
	switch {
	case !b.charge(len(text)):
	case err != nil:
		b.reject("An event cannot be encoded as JSON.")
	case len(text) > b.limit:
		b.reject(fmt.Sprintf("An event has more than %d bytes.", b.limit))
	case b.reserve(len(text) + 1):
		if b.count > 0 {
			b.out = append(b.out, ',')
		}
		b.out = append(b.out, text...)
		b.count++
	}
}

// anonymous names what an event without a person belongs to.
func anonymous(p properties, trace string) string {
	if s := p.first(sessionKeys...); s != "" {
		return "session:" + s
	}
	if trace != "" {
		return "trace:" + trace
	}
	return "service:" + p.first("service.name") + "/" + p.first("service.instance.id", "host.name")
}

// contentID returns an id of the content of an event; equal events of a request
// get different ones, and the same ones when the request is repeated.
func (b *batch) contentID(it *item) string {
	text, err := encode(it)
	if err != nil {
		return ""
	}
	sum := sha1.Sum(text) //nolint:gosec // as above
	b.seen[sum]++
	return hex.EncodeToString(sum[:]) + "#" + strconv.Itoa(b.seen[sum])
}

func (b *batch) reject(reason string) {
	b.rejected++
	b.reason = reason
}

// items returns the events as a JSON array.
func (b *batch) items() []byte { return append(b.out, ']') }

func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

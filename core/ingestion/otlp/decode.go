package otlp

import (
	"encoding/base64"
	"encoding/hex"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/body"
)

// Bounds of a request.
const (
	maxMessages  = 500_000 // messages of a protobuf body, attributes included
	messageBytes = 256     // about the memory of one
	maxDepth     = 64      // nesting of messages
)

var (
	errUnreadable = fault.New(fault.Malformed, "invalid_payload", "The body is not an export request of OTLP.")
	errTooMany    = fault.New(fault.TooLarge, "too_many_values", "Request too large: it has too many values. Send it in parts.")
)

// decode reads a body into an export request. It takes the memory of the messages
// from the account of limits before it builds them. It fails with Malformed, with
// TooLarge and with Unavailable.
func decode(raw []byte, isJSON bool, into proto.Message, limits body.Limits) error {
	if isJSON {
		return decodeJSON(raw, into, limits)
	}
	n, ok := countMessages(raw, into.ProtoReflect().Descriptor(), 0)
	if !ok {
		return errUnreadable
	}
	if n > maxMessages {
		return errTooMany
	}
	if err := limits.Memory.Take(n*messageBytes + len(raw)); err != nil {
		return err
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth}).Unmarshal(raw, into); err != nil {
		return errUnreadable
	}
	return nil
}

func decodeJSON(raw []byte, into proto.Message, limits body.Limits) error {
	limits.Values = maxMessages
	if err := limits.CheckValues(raw); err != nil {
		return err
	}
	if err := limits.Memory.Take(2 * len(raw)); err != nil {
		return err
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: maxDepth}).Unmarshal(raw, into); err != nil {
		return errUnreadable
	}
	return nil
}

// countMessages returns the number of messages in a body of a type. It allocates
// nothing.
func countMessages(raw []byte, of protoreflect.MessageDescriptor, depth int) (n int, ok bool) {
	for n = 1; len(raw) > 0; {
		number, kind, size := protowire.ConsumeTag(raw)
		if size < 0 || depth > maxDepth {
			return n, false
		}
		raw = raw[size:]
		if kind != protowire.BytesType {
			if size = protowire.ConsumeFieldValue(number, kind, raw); size < 0 {
				return n, false
			}
			raw = raw[size:]
			continue
		}
		value, size := protowire.ConsumeBytes(raw)
		if size < 0 {
			return n, false
		}
		raw = raw[size:]
		field := of.Fields().ByNumber(number)
		switch {
		case field == nil:
		case field.Kind() == protoreflect.MessageKind:
			inner, ok := countMessages(value, field.Message(), depth+1)
			if n += inner; !ok || n > maxMessages {
				return n, ok
			}
		case field.IsList():
			n++
		}
	}
	return n, true
}

// hexID returns the id of a trace or a span as text, "" for none. The JSON of OTLP
// has ids in hexadecimal, which the decoder of protobuf takes for base64: such an id
// is encoded back.
func hexID(id []byte, size int) string {
	switch {
	case len(id) == size:
	case len(id) == size*3/2:
		decoded, err := hex.DecodeString(base64.StdEncoding.EncodeToString(id))
		if err != nil {
			return ""
		}
		id = decoded
	default:
		return ""
	}
	for _, b := range id {
		if b != 0 {
			return hex.EncodeToString(id)
		}
	}
	return ""
}

func traceID(id []byte) string { return hexID(id, 16) }
func spanID(id []byte) string  { return hexID(id, 8) }

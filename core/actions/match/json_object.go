package match

import (
	"unsafe"

	"github.com/valyala/fastjson"
)

// maxKept* bound the buffers that an EventView keeps for the next event.
const (
	maxKeptBytes   = 64 << 10
	maxKeptMembers = 4096
)

// jsonObject is a JSON object that is parsed on first use. Other JSON values
// have no members.
type jsonObject struct {
	raw     []byte
	read    bool
	parser  *fastjson.Parser
	members []member
	copied  []byte
}

type member struct {
	name  string
	value *fastjson.Value
}

// reset makes o the object in raw. raw is not copied; see copyRaw.
func (o *jsonObject) reset(raw []byte) {
	o.raw, o.read = raw, false
	if len(o.members) > maxKeptMembers {
		o.members, o.parser = nil, nil
	}
	o.members = o.members[:0]
}

// copyRaw copies the text, for callers that may overwrite it.
func (o *jsonObject) copyRaw() {
	if cap(o.copied) > maxKeptBytes {
		o.copied = nil
	}
	o.copied = append(o.copied[:0], o.raw...)
	o.raw = o.copied
}

func (o *jsonObject) parse() {
	o.read = true
	if len(o.raw) <= len("{}") {
		return
	}
	if o.parser == nil {
		o.parser = new(fastjson.Parser)
	}
	v, err := o.parser.ParseBytes(o.raw)
	if err != nil || v.Type() != fastjson.TypeObject {
		return
	}
	v.GetObject().Visit(func(name []byte, v *fastjson.Value) {
		o.members = append(o.members, member{stringView(name), v})
	})
	if len(o.raw) > maxKeptBytes {
		o.parser = nil // the values stay valid; the large buffer is not reused
	}
}

// get returns a member, the last of several with one name, or nil.
func (o *jsonObject) get(name string) *fastjson.Value {
	if !o.read {
		o.parse()
	}
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.members[i].name == name {
			return o.members[i].value
		}
	}
	return nil
}

// text returns a member that is a string, or "".
func (o *jsonObject) text(name string) string {
	v := o.get(name)
	if v == nil || v.Type() != fastjson.TypeString {
		return ""
	}
	return stringView(v.GetStringBytes())
}

func stringView(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

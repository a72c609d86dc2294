package stage

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
)

// buffers is the pooled memory of one call of Process.
type buffers struct{ events []parsedEvent }

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

func acquireBuffers(n int) *buffers {
	b := bufferPool.Get().(*buffers)
	b.events = slices.Grow(b.events[:0], n)[:n]
	return b
}

func (b *buffers) release() {
	for i := range b.events {
		b.events[i] = parsedEvent{copied: b.events[i].copied[:0]}
	}
	bufferPool.Put(b)
}

// writeResults sets the person and the added properties of the event.
func (f *parsedEvent) writeResults() {
	if f.person != nil {
		f.ev.PersonID = f.person.root().uuid
	} else {
		f.ev.PersonID = PersonUUID(f.ev.ProjectID, f.ev.DistinctID)
	}
	if f.addedProperties != "" {
		f.ev.Properties = appendMembers(f.ev.Properties, f.addedProperties)
	}
}

// appendMembers returns the JSON object raw with members at its end. members
// that are there already are not added again.
func appendMembers(raw []byte, members string) json.RawMessage {
	end := bytes.LastIndexByte(raw, '}')
	if end < 0 || bytes.HasSuffix(raw[:end], []byte(members)) {
		return raw
	}
	if len(bytes.TrimSpace(raw[:end])) == 1 {
		members = members[1:]
	}
	out := make([]byte, 0, end+len(members)+1)
	out = append(out, raw[:end]...)
	out = append(out, members...)
	return append(out, '}')
}

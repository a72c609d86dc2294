package event

import (
	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/jsontext"
)

// eventUUID returns the client's uuid of the event, or one derived from the request
// id and the index. An empty uuid and the nil uuid count as missing: some clients
// send them with every event.
func (it *item) eventUUID(rec *Record) string {
	if it.uuid == nil || string(it.uuid) == `""` {
		return deriveUUID(rec, it.index)
	}
	sent := PlainText(it.uuid)
	if isCanonicalUUID(sent) {
		if sent == "00000000-0000-0000-0000-000000000000" {
			return deriveUUID(rec, it.index)
		}
		return sent
	}
	id, err := uuid.Parse(sent)
	if it.uuid[0] != '"' || err != nil {
		it.addChange(KindInvalidUUID).detail("uuid", FirstChars(sent, MaxChars))
		return deriveUUID(rec, it.index)
	}
	if id == uuid.Nil {
		return deriveUUID(rec, it.index)
	}
	return id.String()
}

// isCanonicalUUID reports whether s is a uuid in lower case with hyphens.
func isCanonicalUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if c-'0' > 9 && c-'a' > 5 {
				return false
			}
		}
	}
	return true
}

// deriveUUID returns a version 7 uuid of the time of arrival, the index of the event
// and bits of the random request id. Decoding a record again gives the same uuids.
// They sort in the order of the request.
func deriveUUID(rec *Record, index uint32) string {
	var id uuid.UUID
	ms := uint64(rec.ReceivedAt.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	place := min(index, 0xfff)
	id[6], id[7] = 0x70|byte(place>>8), byte(place)
	mix := uint64(index) * 0x9e3779b97f4a7c15
	for i := range 8 {
		mix ^= uint64(rec.RequestID[i])<<(8*i) ^ uint64(rec.RequestID[i+8])<<(8*((i+3)&7))
	}
	mix = (mix ^ mix>>30) * 0xbf58476d1ce4e5b9
	mix = (mix ^ mix>>27) * 0x94d049bb133111eb
	mix ^= mix >> 31
	for i := range 8 {
		id[8+i] = byte(mix >> (8 * i))
	}
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}

// SentUUIDs returns the uuid of each item of an array, as the client sent it; ""
// for an item without one. items must be valid JSON.
func SentUUIDs(items []byte) []string {
	var s jsontext.Scanner
	var it item
	var p properties
	var out []string
	s.Reset(items)
	s.Peek()
	s.Open()
	for first := true; s.Element(first); first = false {
		id := ""
		if s.Peek() == '{' {
			it.reset(0)
			it.readFields(&s, &p)
			if it.uuid != nil && it.uuid[0] == '"' {
				id = PlainText(it.uuid)
			}
		} else {
			s.Skip()
		}
		out = append(out, id)
	}
	return out
}

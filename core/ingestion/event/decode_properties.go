package event

import (
	"hash/maphash"

	"github.com/guidonhq/guidon/core/geoip/location"
	"github.com/guidonhq/guidon/core/jsontext"
)

// The properties that affect how an event is decoded.
const (
	propIP = iota
	propDistinctID
	propDollarDistinctID
	propSet
	propSetOnce
	propUnset
	propSentAt
	propIgnoreSentAt
	propPersonSwitch
	propCaptureInternal
	propElements
	propElementsChain
	propGroupKey
	propGroupSet
	propClientMessage
	propSessionID
	propWindowID
	propCookieless
	propProductTour
	propLib
	propLibVersion
	propGeoipDisable
	propCount
	propOther = propCount
)

func knownProperty(name []byte) int {
	switch string(name) {
	case "$ip":
		return propIP
	case "distinct_id":
		return propDistinctID
	case "$distinct_id":
		return propDollarDistinctID
	case "$set":
		return propSet
	case "$set_once":
		return propSetOnce
	case "$unset":
		return propUnset
	case "$sent_at":
		return propSentAt
	case "$ignore_sent_at":
		return propIgnoreSentAt
	case "$process_person_profile":
		return propPersonSwitch
	case "capture_internal":
		return propCaptureInternal
	case "$elements":
		return propElements
	case "$elements_chain":
		return propElementsChain
	case "$group_key":
		return propGroupKey
	case "$group_set":
		return propGroupSet
	case "$$client_ingestion_warning_message":
		return propClientMessage
	case "$session_id":
		return propSessionID
	case "$window_id":
		return propWindowID
	case "$cookieless_mode":
		return propCookieless
	case "$product_tour_id":
		return propProductTour
	case "$lib":
		return propLib
	case "$lib_version":
		return propLibVersion
	case location.Disable:
		return propGeoipDisable
	}
	return propOther
}

// properties is the properties object of an item.
type properties struct {
	raw            []byte            // as sent; nil if missing or null
	val            [propCount][]byte // the last value of each known name, including null
	count          int
	dirty          bool // see scanner
	maybeDuplicate bool // a name may occur twice
	notObject      bool // the value is not an object
	located        bool // it may have a property of a location
	filter         [16]uint64
	seed           maphash.Seed
}

func (p *properties) reset() {
	seed := p.seed
	if seed == (maphash.Seed{}) {
		seed = maphash.MakeSeed()
	}
	*p = properties{seed: seed}
}

// readObject reads the object at the cursor.
func (p *properties) readObject(s *jsontext.Scanner) {
	p.reset()
	switch s.Peek() {
	case '{':
	case 'n':
		s.Skip()
		return
	default:
		p.notObject = true
		s.Skip()
		return
	}
	before := s.Dirty
	s.Dirty = false
	start := s.Pos
	var buf [48]byte
	s.Open()
	name, ok := s.Member(true)
	for ; ok; name, ok = s.Member(false) {
		p.count++
		key := name.Resolve(buf[:])
		p.noteName(key)
		v := s.Value()
		if id := knownProperty(key); id != propOther {
			p.val[id] = v
		} else if len(key) > len(location.Prefix) && key[1] == 'g' && location.Is(jsontext.View(key)) {
			p.located = true
		}
	}
	if s.Bad {
		return
	}
	p.raw = s.Data[start:s.Pos]
	p.dirty = s.Dirty
	s.Dirty = s.Dirty || before
}

// noteName adds a name to a Bloom filter and sets maybeDuplicate if the filter may
// hold it already. A false positive costs a check only.
func (p *properties) noteName(key []byte) {
	h := maphash.Bytes(p.seed, key)
	word, bit := h&15, uint64(1)<<(h>>4&63)
	if p.filter[word]&bit != 0 {
		p.maybeDuplicate = true
	}
	p.filter[word] |= bit
}

// IsObject reports whether a value is a JSON object.
func IsObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// IsNull reports whether a value is missing, null or NaN.
func IsNull(raw []byte) bool { return raw == nil || raw[0] == 'n' || raw[0] == 'N' }

package decide

import (
	"net/netip"

	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/geoip/location"
)

// Locator knows the locations of addresses, in the compact form of
// core/geoip/location.
type Locator interface {
	Locate(addr netip.Addr) []byte
}

// Location is the memory of the location of one request. An evaluation refers to
// it until its Release.
type Location struct {
	parser fastjson.Parser
	text   []byte
}

// Locates reports whether an evaluation reads the location of its person, and the
// server can find it.
func (d *Decider) Locates(e *eval.Evaluation) bool {
	return d.lookups.Locator != nil && e.ReadsLocation()
}

// Locate sets the location of an address in an evaluation, whose request is
// described already.
func (d *Decider) Locate(e *eval.Evaluation, l *Location, addr netip.Addr) {
	compact := d.lookups.Locator.Locate(addr)
	if len(compact) == 0 {
		return
	}
	l.text = location.AppendObject(l.text[:0], compact)
	if v, err := l.parser.ParseBytes(l.text); err == nil {
		e.SetLocation(v.GetObject())
	}
}

// locationOf returns the location of an address as a JSON object, nil if it is
// unknown.
func (d *Decider) locationOf(addr netip.Addr) []byte {
	if d.lookups.Locator == nil {
		return nil
	}
	if compact := d.lookups.Locator.Locate(addr); len(compact) > 0 {
		return location.AppendObject(nil, compact)
	}
	return nil
}

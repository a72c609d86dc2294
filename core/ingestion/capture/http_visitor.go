package capture

import (
	"bytes"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/cookieless"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/items"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/web"
)

// Visitors tells visitors without cookies apart.
type Visitors interface {
	Identify(v *cookieless.Visitor) (cookieless.Identity, bool)
}

// WithVisitors sets what tells visitors without cookies apart; nil for nothing.
func (h *HTTP) WithVisitors(v Visitors) *HTTP {
	h.visitors = v
	return h
}

// cookielessMark is part of each item of a visitor without cookies: of
// $cookieless_mode and of the sentinel. It begins with a letter that is rare in
// bodies, which makes the search fast.
var cookielessMark = []byte("kieless")

// identityBytes is about what the ids of a visitor add to an item.
const identityBytes = 256

// identifyItems gives the items of visitors without cookies the ids that stand for
// the visitor, and removes what they derive from. If all items are of such
// visitors the record does not keep the address.
func (h *HTTP) identifyItems(c *fiber.Ctx, rec *event.Record, addr netip.Addr) error {
	if h.visitors == nil || !bytes.Contains(rec.Items, cookielessMark) {
		return nil
	}
	n := bytes.Count(rec.Items, cookielessMark)
	if err := web.Memory(c).Take(len(rec.Items) + n*identityBytes); err != nil {
		return saturated(err)
	}
	v := visitorEditor{visitors: h.visitors, request: cookieless.Visitor{
		ProjectID: rec.ProjectID, Addr: addr, Host: c.Get(fiber.HeaderOrigin), Agent: c.Get(fiber.HeaderUserAgent), At: rec.ReceivedAt,
	}}
	rec.Items = items.Edit(make([]byte, 0, len(rec.Items)+n*identityBytes), rec.Items, v.edit)
	if !v.others {
		rec.ClientIP = netip.Addr{}
	}
	return nil
}

// visitorEditor edits the items of one request.
type visitorEditor struct {
	visitors Visitors
	request  cookieless.Visitor // as far as the request describes it
	others   bool               // an item is not of a visitor without cookies
}

func (e *visitorEditor) edit(it *items.Item) {
	fields, p := it.Fields(), it.Properties()
	var options items.Object
	options.Read(fields.Get("options"))
	anonymous := isSentinel(fields, p)
	if !anonymous && !event.IsTrue(p.Get("$cookieless_mode")) && !event.IsTrue(options.Get("cookieless_mode")) {
		e.others = true
		return
	}
	p.Set("$cookieless_mode", []byte("true"))
	v := e.visitor(fields, p)
	if id, ok := e.visitors.Identify(&v); ok {
		setIdentity(fields, p, id)
	}
	if anonymous || textOf(p, "alias") == cookieless.Sentinel {
		p.Set("$process_person_profile", []byte("false"))
		if options.Get("process_person_profile") != nil {
			options.Remove("process_person_profile")
			fields.Set("options", options.Append(nil))
		}
	}
	removePersonal(p)
}

// idFields are the names of the distinct id of an item, in its fields and in its
// properties.
var idFields = [...]string{"distinct_id", "$distinct_id"}

// isSentinel reports whether an item has the distinct id of all visitors.
func isSentinel(fields, p *items.Object) bool {
	for _, name := range idFields {
		if textOf(fields, name) == cookieless.Sentinel || textOf(p, name) == cookieless.Sentinel {
			return true
		}
	}
	return false
}

// visitor returns the visitor of an item: what it says itself, else what the
// request says.
func (e *visitorEditor) visitor(fields, p *items.Object) cookieless.Visitor {
	v := e.request
	if addr, err := netip.ParseAddr(textOf(p, "$ip")); err == nil {
		v.Addr = addr
	}
	for _, name := range [...]string{"$current_url", "$host"} { // the last one counts
		if host := textOf(p, name); host != "" {
			v.Host = host
		}
	}
	if agent := textOf(p, "$raw_user_agent"); agent != "" {
		v.Agent = agent
	}
	v.Zone, v.Extra = textOf(p, "$timezone"), textOf(p, "$cookieless_extra")
	if at, ok := event.ParseTime(textOf(fields, "timestamp")); ok {
		v.At = at
	}
	return v
}

// textOf returns a member that is a string, "" for any other.
func textOf(o *items.Object, name string) string {
	if raw := o.Get(name); len(raw) > 0 && raw[0] == '"' {
		return strings.TrimSpace(event.PlainText(raw))
	}
	return ""
}

// setIdentity sets the ids of a visitor. An event of a person who has logged in keeps
// the distinct id of the person.
func setIdentity(fields, p *items.Object, id cookieless.Identity) {
	p.Set("$device_id", quote(id.DeviceID))
	p.Set("$session_id", quote(id.SessionID))
	fields.Remove("session_id")
	for _, name := range idFields {
		for _, o := range [...]*items.Object{fields, p} {
			if textOf(o, name) == cookieless.Sentinel {
				o.Set(name, quote(id.DistinctID))
			}
		}
	}
}

// removePersonal removes what the ids derive from, and the sentinel from merges. An address that the item named
// becomes null, so that it gets neither that of the connection nor its location.
func removePersonal(p *items.Object) {
	if p.Get("$ip") != nil {
		p.Set("$ip", []byte("null"))
	}
	if textOf(p, "$anon_distinct_id") == cookieless.Sentinel {
		p.Remove("$anon_distinct_id")
	}
	p.Remove("$raw_user_agent")
	p.Remove("$cookieless_extra")
	for set, name := range map[string]string{"$set": "$raw_user_agent", "$set_once": "$initial_raw_user_agent"} {
		var o items.Object
		o.Read(p.Get(set))
		if o.Get(name) != nil {
			o.Remove(name)
			p.Set(set, o.Append(nil))
		}
	}
}

func quote(s string) []byte { return jsontext.AppendString(nil, s) }

package capture

import (
	"bytes"
	"net/netip"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/geoip/location"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/items"
	"github.com/guidonhq/guidon/core/web"
)

// Locator knows the locations of addresses, in the compact form of
// core/geoip/location.
type Locator interface {
	Locate(addr netip.Addr) []byte
}

// WithLocator sets the locator that finds the locations of clients; nil for none.
func (h *HTTP) WithLocator(l Locator) *HTTP {
	h.locator = l
	return h
}

// setClient sets what a record says of the client's address. It fails with
// Unavailable without memory for it.
func (h *HTTP) setClient(c *fiber.Ctx, rec *event.Record, project auth.Project) error {
	addr := h.router.IP(c).WithZone("")
	if !project.AnonymizeIPs {
		rec.ClientIP = addr
	}
	if h.locator != nil {
		rec.Location = h.locator.Locate(addr)
		if err := h.locateItems(c, rec); err != nil {
			return err
		}
	}
	return h.identifyItems(c, rec, addr)
}

// locationBytes is about the length of the properties of a location.
const locationBytes = 512

var addressProperty = []byte(`"$ip"`)

// locateItems gives the items that name an address its location: the record has
// that of the connection.
func (h *HTTP) locateItems(c *fiber.Ctx, rec *event.Record) error {
	n := bytes.Count(rec.Items, addressProperty)
	if n == 0 {
		return nil
	}
	if err := web.Memory(c).Take(len(rec.Items) + n*locationBytes); err != nil {
		return saturated(err)
	}
	rec.Items = items.Edit(make([]byte, 0, len(rec.Items)+n*locationBytes), rec.Items, h.locateItem)
	return nil
}

// locateItem adds the location of the address that an item names, except the
// properties that it has.
func (h *HTTP) locateItem(it *items.Item) {
	p := it.Properties()
	raw := p.Get("$ip")
	if len(raw) == 0 || raw[0] != '"' || event.IsTrue(p.Get(location.Disable)) {
		return
	}
	addr, err := netip.ParseAddr(event.PlainText(raw))
	if err != nil {
		return
	}
	location.Each(h.locator.Locate(addr), func(name string, value []byte) {
		if p.Get(name) == nil {
			p.Set(name, value)
		}
	})
}

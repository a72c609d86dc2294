package decide

import (
	"net/netip"
	"time"

	"github.com/guidonhq/guidon/core/cookieless"
)

// Visitors tells visitors without cookies apart.
type Visitors interface {
	Identify(v *cookieless.Visitor) (cookieless.Identity, bool)
}

// Client is what a request says of the browser that sends it.
type Client struct {
	Addr                       netip.Addr
	Origin, Agent, Zone, Extra string
}

// Visitor returns the ids of a visitor without cookies, the same that the events of
// the visitor have; false if visitors cannot be told apart.
func (d *Decider) Visitor(projectID int64, c Client) (cookieless.Identity, bool) {
	if d.lookups.Visitors == nil {
		return cookieless.Identity{}, false
	}
	return d.lookups.Visitors.Identify(&cookieless.Visitor{
		ProjectID: projectID, Addr: c.Addr, Host: c.Origin, Agent: c.Agent, Zone: c.Zone, Extra: c.Extra, At: time.Now(),
	})
}

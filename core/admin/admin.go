// Package admin serves the administration of the server itself, as opposed to
// the projects on it: plugin instances under /api/plugins and the fields of
// GET /_readiness.
//
// An instance is one plugin of the configuration. Its state has two owners: the
// host knows the process, delivery knows the batches that a sink has taken and
// those it has not. The handlers here join the two and hold no state.
//
// Instances belong to the server, not to an organization: a paused sink stops
// for the projects of all organizations. Every path here therefore needs an
// operator, a right of the user that no level in an organization includes, and
// the scope plugin:read or plugin:write of the key.
//
// Readiness covers what the server cannot work without: a journal that takes
// events, and the plugins marked as required. A database that is away is not
// among them, because capture and decide go on without it, and neither is a
// backlog, because they do not wait for it.
package admin

import (
	"context"
	"slices"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/status"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/core/web"
)

// Reload reads the configuration again. The results are JSON-encodable summaries of
// the changes; a configuration that cannot be used is an Invalid error.
type Reload struct {
	// Apply applies the configuration for a principal, and logs it.
	Apply func(ctx context.Context, who *auth.Principal) (any, error)
	// Preview returns what Apply would do and changes nothing.
	Preview func() (any, error)
}

// Plugins serves the plugin instances.
type Plugins struct {
	host      *host.Host
	delivery  delivery.Deliveries
	operators *operators.Operators
	reload    Reload
	audit     *activity.Audit
	public    Public
	leftOut   LeftOut
}

// Public serves /api/plugins, /api/cluster and /api/health for the console, too: on the public
// address, or on http.console_address if that is set.
type Public bool

// Register registers a route for operators on the admin address, and if p is true on the
// address of the console.
func (p Public) Register(g *web.Router, method, path, scope string, h func(c *web.Call) error) {
	h = OperatorsOnly(h)
	g.Admin(method, path, scope, h)
	if p {
		g.Manage(method, path, scope, func(c *web.Call) error {
			if err := g.ForConsole(c.Ctx); err != nil {
				return err
			}
			return h(c)
		})
	}
}

// NewPlugins returns the handlers of /api/plugins.
func NewPlugins(h *host.Host, d delivery.Deliveries, o *operators.Operators, reload Reload, audit *activity.Audit, public Public, leftOut LeftOut) *Plugins {
	return &Plugins{host: h, delivery: d, operators: o, reload: reload, audit: audit, public: public, leftOut: leftOut}
}

// logged adds the entry of an operation to the activity log and runs it: verb is what is
// done to the instance of the path. Without an entry nothing is done. An operation can
// take long, and holds no lock of the database.
func (p *Plugins) logged(verb string, do func(c *web.Call) error) func(c *web.Call) error {
	return func(c *web.Call) error {
		name := c.Params("name")
		if !p.exists(name) {
			return do(c) // it answers NotFound with its own code, and changes nothing
		}
		err := p.audit.Change(c.UserContext(), c.Principal, func(context.Context) (*activity.Event, error) {
			return &activity.Event{Scope: activity.Plugin, ItemID: name, Activity: verb, Name: name}, nil
		})
		if err != nil {
			return err
		}
		return do(c)
	}
}

// exists reports whether there is an instance of the name.
func (p *Plugins) exists(name string) bool {
	return slices.ContainsFunc(p.host.Status(), func(s status.Status) bool { return s.Name == name })
}

// OperatorsOnly accepts only requests of operators with a key that is not
// restricted to some projects.
func OperatorsOnly(next func(c *web.Call) error) func(c *web.Call) error {
	return func(c *web.Call) error {
		if !c.Principal.IsOperator() {
			return fault.New(fault.Forbidden, "permission_denied", "Only operators of this server may do this.")
		}
		if c.Principal.IsRestricted() {
			return fault.New(fault.Forbidden, "permission_denied", "An API key that is restricted to some projects cannot administer the server.")
		}
		return next(c)
	}
}

package app

import (
	"strconv"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/ingestion"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/core/web"
)

// pluginsHTTP shows operators every plugin instance: what the host knows of
// the process and what delivery knows of the work. And it does what they ask.
type pluginsHTTP struct {
	host    *host.Host
	deliver *ingestion.Deliver
	reload  *reloader
	offers  *operators.Operators
}

// instance is one line of the answer. Delivery is null for a plugin that takes
// no events.
type instance struct {
	host.InstanceStatus
	Delivery *ingestion.SinkStatus `json:"delivery"`
	// Operators are those that a matcher answers for.
	Operators []offered `json:"operators,omitempty"`
}

// The most and the usual number of log lines in an answer.
const (
	mostLines  = 500
	usualLines = 100
)

// Routes registers everything below /api/plugins.
func (h *pluginsHTTP) Routes(g *web.Gate) {
	g.Manage("GET", "/api/plugins", "plugin:read", h.list)
	g.Manage("POST", "/api/plugins/reload", "plugin:write", h.reloadAll)
	g.Manage("GET", "/api/plugins/:name", "plugin:read", h.one)
	g.Manage("GET", "/api/plugins/:name/logs", "plugin:read", h.logs)
	g.Manage("POST", "/api/plugins/:name/release", "plugin:write", h.act((*host.Host).Release))
	g.Manage("POST", "/api/plugins/:name/restart", "plugin:write", h.act((*host.Host).Restart))
	g.Manage("POST", "/api/plugins/:name/check", "plugin:write", h.check)
}

func (h *pluginsHTTP) list(c *web.Call) error {
	results, err := h.instances(c, "")
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, map[string]any{"results": results})
}

// instances returns the instance of that name, or all.
func (h *pluginsHTTP) instances(c *web.Call, name string) ([]instance, error) {
	deliveries, err := h.deliver.Status(c.UserContext())
	if err != nil {
		return nil, err
	}
	bySink := make(map[string]*ingestion.SinkStatus, len(deliveries))
	for i := range deliveries {
		bySink[deliveries[i].Sink] = &deliveries[i]
	}
	results := []instance{}
	for _, status := range h.host.Status() {
		if name == "" || status.Name == name {
			results = append(results, instance{status, bySink[status.Name], offeredBy(h.offers, status.Name)})
		}
	}
	return results, nil
}

func (h *pluginsHTTP) one(c *web.Call) error {
	results, err := h.instances(c, c.Params("name"))
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return noInstance()
	}
	return web.JSON(c.Ctx, results[0])
}

func noInstance() error {
	return fault.New(fault.NotFound, "not_found", "No plugin instance has that name.")
}

func (h *pluginsHTTP) logs(c *web.Call) error {
	n := usualLines
	if text := c.Query("lines"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > mostLines {
			return fault.Fieldf("lines", "invalid_input", "A number from 1 to %d is needed.", mostLines)
		}
	}
	lines, ok := h.host.Logs(c.Params("name"), n)
	if !ok {
		return noInstance()
	}
	return web.JSON(c.Ctx, map[string]any{"results": lines})
}

// act does something with the instance and answers with its state.
func (h *pluginsHTTP) act(do func(*host.Host, string) bool) func(*web.Call) error {
	return func(c *web.Call) error {
		if !do(h.host, c.Params("name")) {
			return noInstance()
		}
		return h.one(c)
	}
}

func (h *pluginsHTTP) check(c *web.Call) error {
	result, ok := h.host.Check(c.UserContext(), c.Params("name"))
	if !ok {
		return noInstance()
	}
	return web.JSON(c.Ctx, result)
}

func (h *pluginsHTTP) reloadAll(c *web.Call) error {
	done, err := h.reload.Reload(c.UserContext(), "asked by "+c.Who.User.Email)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, done)
}

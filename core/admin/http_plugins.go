package admin

import (
	"encoding/json"
	"strconv"

	"github.com/guidonhq/guidon/core/ingestion/delivery"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/status"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

var _ web.Routes = (*Plugins)(nil)

// instance is the answer for one plugin instance. Delivery is null for a
// plugin that takes no events; Operators are those of a matcher.
type instance struct {
	status.Status
	// Trouble is why the instance does not work, or works with a problem, in one line.
	Trouble   string               `json:"trouble,omitempty"`
	Delivery  *delivery.SinkStatus `json:"delivery"`
	Operators []operator           `json:"operators,omitempty"`
}

// operator describes an operator to authors of filters.
type operator struct {
	ID            string          `json:"id"`
	Label         string          `json:"label,omitempty"`
	Doc           string          `json:"doc,omitempty"`
	ValueSchema   json.RawMessage `json:"value_schema,omitempty"`
	PropertyTypes []string        `json:"property_types,omitempty"`
	Equivalent    string          `json:"equivalent,omitempty"`
}

// Bounds of the number of log lines in one answer.
const (
	maxLogLines     = 500
	defaultLogLines = 100
)

// Routes registers everything below /api/plugins, for operators: on the admin address,
// and on that of the console.
func (p *Plugins) Routes(g *web.Router) {
	add := func(method, path, scope string, h func(c *web.Call) error) {
		p.public.Register(g, method, path, scope, h)
	}
	add("GET", "/api/plugins", "plugin:read", p.list)
	g.Admin("POST", "/api/plugins/reload", "plugin:write", OperatorsOnly(p.reloadConfig))
	add("GET", "/api/plugins/:name", "plugin:read", p.get)
	add("GET", "/api/plugins/:name/logs", "plugin:read", p.logs)
	add("POST", "/api/plugins/:name/release", "plugin:write", p.logged("released", p.change((*host.Host).Release)))
	add("POST", "/api/plugins/:name/restart", "plugin:write", p.logged("restarted", p.change((*host.Host).Restart)))
	add("POST", "/api/plugins/:name/check", "plugin:write", p.check)
	add("POST", "/api/plugins/:name/pause", "plugin:write", p.logged("paused", p.pause))
	add("POST", "/api/plugins/:name/resume", "plugin:write", p.logged("resumed", p.resume))
}

func (p *Plugins) list(c *web.Call) error {
	results, err := p.instances(c, "")
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, map[string]any{"results": results})
}

// instances returns the instance of that name, or all for an empty name.
func (p *Plugins) instances(c *web.Call, name string) ([]instance, error) {
	deliveries, err := p.delivery.Status(c.UserContext())
	if err != nil {
		return nil, err
	}
	results := []instance{}
	for _, st := range statusOf(p.host, p.leftOut) {
		if name == "" || st.Name == name {
			d := findDelivery(deliveries, st.Name)
			results = append(results, instance{st, troubleOf(st, d), d, operatorsOf(p.operators, st.Name)})
		}
	}
	return results, nil
}

func operatorsOf(o *operators.Operators, plugin string) []operator {
	var out []operator
	for _, op := range o.List() {
		if op.Plugin == plugin {
			out = append(out, operator{op.ID, op.Label, op.Doc, op.ValueSchema, op.PropertyTypes, op.CEL})
		}
	}
	return out
}

func (p *Plugins) get(c *web.Call) error {
	results, err := p.instances(c, c.Params("name"))
	if err != nil {
		return err
	}
	if len(results) == 0 {
		return instanceNotFound()
	}
	return web.JSON(c.Ctx, results[0])
}

func instanceNotFound() error {
	return fault.New(fault.NotFound, "not_found", "No plugin instance has that name.")
}

func (p *Plugins) logs(c *web.Call) error {
	n := defaultLogLines
	if text := c.Query("lines"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > maxLogLines {
			return fault.Fieldf("lines", "invalid_input", "A number from 1 to %d is needed.", maxLogLines)
		}
	}
	lines, ok := p.host.Logs(c.Params("name"), n)
	if !ok {
		return instanceNotFound()
	}
	return web.JSON(c.Ctx, map[string]any{"results": lines})
}

// change returns a handler that applies do to the instance and answers with
// its new state. do reports false for an unknown instance.
func (p *Plugins) change(do func(*host.Host, string) bool) func(*web.Call) error {
	return func(c *web.Call) error {
		if !do(p.host, c.Params("name")) {
			return instanceNotFound()
		}
		return p.get(c)
	}
}

func (p *Plugins) check(c *web.Call) error {
	result, ok := p.host.Check(c.UserContext(), c.Params("name"))
	if !ok {
		return instanceNotFound()
	}
	return web.JSON(c.Ctx, result)
}

// reloadConfig applies the configuration, or with dry_run answers what would change.
func (p *Plugins) reloadConfig(c *web.Call) error {
	dryRun, err := query.Bool(c, "dry_run")
	if err != nil {
		return err
	}
	if !dryRun {
		return p.applyConfig(c)
	}
	web.MarkLogged(c.UserContext()) // changes nothing
	planned, err := p.reload.Preview()
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, planned)
}

func (p *Plugins) applyConfig(c *web.Call) error {
	done, err := p.reload.Apply(c.UserContext(), c.Principal)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, done)
}

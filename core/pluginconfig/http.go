package pluginconfig

import (
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/admin"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves the configuration of plugins to operators.
type HTTP struct {
	service *Service
	public  admin.Public
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the handlers of s.
func NewHTTP(s *Service, public admin.Public) *HTTP { return &HTTP{s, public} }

// Routes registers the paths of configurations beside the others of plugins.
func (h *HTTP) Routes(g *web.Router) {
	for _, r := range []struct {
		method, path, scope string
		run                 func(c *web.Call) error
	}{
		{fiber.MethodGet, "/api/plugins/available", "plugin:read", h.available},
		{fiber.MethodGet, "/api/plugins/:name/config", "plugin:read", h.get},
		{fiber.MethodPut, "/api/plugins/:name/config", "plugin:write", h.set},
		{fiber.MethodDelete, "/api/plugins/:name/config", "plugin:write", h.remove},
	} {
		h.public.Register(g, r.method, r.path, r.scope, r.run)
	}
}

func (h *HTTP) available(c *web.Call) error {
	return web.JSON(c.Ctx, map[string]any{"results": h.service.Available()})
}

func (h *HTTP) get(c *web.Call) error {
	config, err := h.service.Get(c.UserContext(), c.Params("name"))
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, config)
}

func (h *HTTP) set(c *web.Call) error {
	f, err := c.Fields()
	if err != nil {
		return err
	}
	change := Change{
		Name: c.Params("name"), Plugin: f.String("plugin", web.Required).Value, Kind: f.String("kind").Value, Version: -1,
	}
	raw := f.Object("config").Value
	if version := f.Int("version", web.Min(0)); version.Set {
		change.Version = version.Value
	}
	if err := f.Err(); err != nil {
		return err
	}
	change.Config = map[string]any{}
	if len(raw) > 0 {
		if change.Config, err = decode(raw); err != nil {
			return fault.Field("config", "invalid_input", "Must be an object.")
		}
	}
	config, err := h.service.Set(c.UserContext(), c.Principal, change)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, config)
}

func (h *HTTP) remove(c *web.Call) error {
	version := int64(-1)
	if text := c.Query("version"); text != "" {
		var err error
		if version, err = strconv.ParseInt(text, 10, 64); err != nil || version < 0 {
			return fault.Field("version", "invalid_input", "A whole number is needed.")
		}
	}
	if err := h.service.Remove(c.UserContext(), c.Principal, c.Params("name"), version); err != nil {
		return err
	}
	c.Status(fiber.StatusNoContent)
	return nil
}

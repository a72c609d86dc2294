package web

import (
	"strings"

	"github.com/gofiber/fiber/v2"
)

// pathOptions is the answer to OPTIONS of a management path, in the format that
// clients of this protocol know.
type pathOptions struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Renders     []string `json:"renders"`
	Parses      []string `json:"parses"`
}

// serveOptions answers OPTIONS of a management path: a preflight of a configured
// origin without a key, as browsers send it, and any other request like a
// management request that needs no scope, with the methods in Allow.
func (r *Router) serveOptions(c *fiber.Ctx, rt *route) error {
	if len(r.live.Load().origins) > 0 && len(c.Request().Header.Peek(fiber.HeaderOrigin)) > 0 {
		return Done(c)
	}
	return r.serveManaged(c, rt, func(c *Call) error {
		c.Set(fiber.HeaderAllow, rt.port.table.allowed(rt, "")+", OPTIONS")
		return JSON(c.Ctx, pathOptions{
			Name: pathName(rt.pattern), Renders: []string{fiber.MIMEApplicationJSON},
			Parses: []string{fiber.MIMEApplicationJSON, fiber.MIMEApplicationForm, fiber.MIMEMultipartForm},
		})
	})
}

// pathName returns the last fixed segment of a path as words.
func pathName(pattern string) string {
	segments := strings.Split(strings.Trim(pattern, "/"), "/")
	name := segments[len(segments)-1]
	kind := ""
	if strings.HasPrefix(name, ":") && len(segments) > 1 {
		name, kind = segments[len(segments)-2], " Instance"
	}
	words := strings.Fields(strings.ReplaceAll(name, "_", " "))
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, " ") + kind
}

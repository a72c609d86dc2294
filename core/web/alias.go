package web

import (
	"strings"

	"github.com/gofiber/fiber/v2"
)

// The paths of a project, and their alias: programs written for environments name
// those where they mean the project.
const (
	projectPaths     = "/api/projects/:project_id"
	environmentPaths = "/api/environments/:project_id"
)

// register hands a route to Fiber, also under its alias. Logs, metrics and the list
// of routes name the route by its pattern under either path.
func (p *port) register(method string, rt *route) {
	p.app.Add(method, rt.pattern, rt.serve)
	rest, ok := strings.CutPrefix(rt.pattern, projectPaths)
	if ok && (rest == "" || rest[0] == '/') {
		p.app.Add(method, environmentPaths+rest, rt.serve)
	}
}

// reject makes Fiber answer 405 for a method of a path.
func (p *port) reject(method, pattern string) {
	refuse := func(*fiber.Ctx) error { return fiber.ErrMethodNotAllowed }
	p.app.Add(method, pattern, refuse)
	if rest, ok := strings.CutPrefix(pattern, projectPaths); ok {
		p.app.Add(method, environmentPaths+rest, refuse)
	}
}

// withoutAlias returns the path of a route for a path of its alias.
func withoutAlias(path string) string {
	if rest, ok := strings.CutPrefix(path, "/api/environments/"); ok {
		return "/api/projects/" + rest
	}
	return path
}

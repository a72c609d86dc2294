package clients

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/clients/scripts"
	"github.com/guidonhq/guidon/core/web"
)

// RemoteConfig encodes the script that gives a browser library the configuration
// of a project. It must be safe for concurrent use.
type RemoteConfig interface {
	ConfigScript(project auth.Project, token string) []byte
}

// HTTP serves browser libraries and empty answers.
type HTTP struct {
	library *scripts.Library
	config  RemoteConfig // nil: /array/:token/array.js has no configuration
	router  *web.Router
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the handlers. config may be nil.
func NewHTTP(l *scripts.Library, config RemoteConfig) *HTTP { return &HTTP{library: l, config: config} }

// Routes registers the paths.
func (h *HTTP) Routes(g *web.Router) {
	h.router = g
	g.Public(fiber.MethodGet, "/static/:file", h.newest)
	g.Public(fiber.MethodGet, "/static/:version/:file", h.ofVersion)
	g.Public(fiber.MethodGet, "/array/:token/array.js", h.withConfig)
	for _, e := range emptyAnswers {
		g.Public(e.method, e.path, e.answer)
	}
}

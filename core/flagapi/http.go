package flagapi

import (
	"strconv"

	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP serves requests about several flags.
type HTTP struct {
	bulk   bulkHTTP
	copies copiesHTTP
	static staticCohortHTTP
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the endpoints over the services of flags and cohorts.
func NewHTTP(s *flags.Service, c *cohorts.Service, n *audience.Counter, p Projects) *HTTP {
	return &HTTP{bulkHTTP{s}, copiesHTTP{s, c, p}, staticCohortHTTP{s, c, n}}
}

// Scopes of personal keys.
const (
	scopeRead  = "feature_flag:read"
	scopeWrite = "feature_flag:write"
)

const projectFlagsPath = "/api/projects/:project_id/feature_flags"

// Routes registers the endpoints.
func (h *HTTP) Routes(g *web.Router) {
	h.bulk.routes(g)
	h.copies.routes(g)
	h.static.routes(g)
}

// idOf reads an id from the path. Other texts are NotFound.
func idOf(c *web.Call, name string) (int64, error) {
	id, err := strconv.ParseInt(c.Params(name), 10, 64)
	if err != nil || id < 1 {
		return 0, errNotFound
	}
	return id, nil
}

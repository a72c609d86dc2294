package admin

import (
	"context"

	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/web"
)

// Nodes lists the nodes of a cluster.
type Nodes interface {
	Status(ctx context.Context) (cluster.Status, error)
}

// Cluster serves the nodes of the cluster, for operators.
type Cluster struct{ nodes Nodes }

var _ web.Routes = (*Cluster)(nil)

// NewCluster returns the handler of /api/cluster.
func NewCluster(n Nodes) *Cluster { return &Cluster{n} }

// Routes registers the route.
func (h *Cluster) Routes(g *web.Router) {
	g.Admin("GET", "/api/cluster", "plugin:read", operatorsOnly(func(c *web.Call) error {
		status, err := h.nodes.Status(c.UserContext())
		if err != nil {
			return err
		}
		return web.JSON(c.Ctx, status)
	}))
}

package standby

import (
	"context"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// HTTP adds the state of the database to readiness.
type HTTP struct{ service *Service }

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the readiness of s.
func NewHTTP(s *Service) *HTTP { return &HTTP{s} }

// Routes registers the check and the field "database". A server that waits for
// the database is ready if it has a snapshot to serve from.
func (h *HTTP) Routes(r *web.Router) {
	r.ReadinessField("database", func() any { status, _ := h.service.Status(); return status })
	r.Check("database", func(context.Context) error {
		if status, ok := h.service.Status(); !ok {
			return fault.New(fault.Unavailable, db.CodeUnavailable, status.Message)
		}
		return nil
	})
}

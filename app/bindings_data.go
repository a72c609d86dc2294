package app

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/core/actions/history"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/cluster"
	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/export"
	"github.com/guidonhq/guidon/core/ingestion/erasure"
	"github.com/guidonhq/guidon/core/ingestion/replay"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/retention"
	"github.com/guidonhq/guidon/core/web"
)

// definitionBindings gives definitions the group types, the names of copied
// properties and the users.
var definitionBindings = fx.Options(
	fx.Provide(
		func(p *persons.Service, a *auth.Service) definitions.Dependencies {
			return definitions.Dependencies{Groups: p, CopiedNames: persons.CopiedPropertyNames, Users: a}
		},
		route(func(h *definitions.HTTP) web.Routes { return h }),
	),
	fx.Invoke(func(p *persons.Service, d *definitions.Service) { p.Groups.OnTypesChanged(d.ForgetGroups) }),
)

// dataBindings gives stored events an end and a way out.
var dataBindings = fx.Options(retention.Module,
	fx.Provide(
		route(func(h *retention.HTTP) web.Routes { return h }),
		route(func(e *events.Service, p *persons.Service) web.Routes { return export.NewHTTP(e, p) }),
	),
	fx.Invoke(func(h *history.Service, r *retention.Service) { h.ShowRetention(r) }),
	fx.Invoke(runOnOneNode),
)

// nodeJobs are the jobs that nodes share; nil without a cluster.
type nodeJobs struct {
	fx.In

	Jobs cluster.Jobs `optional:"true"`
}

// runOnOneNode makes one node at a time do what all nodes could do.
func runOnOneNode(j nodeJobs, l *requestlog.Log, events *retention.Service, r *replay.Replayer, e *erasure.Service) {
	if j.Jobs != nil {
		events.RunOn(j.Jobs)
		r.RunOn(j.Jobs)
		if l.Shared != nil {
			e.RunOn(j.Jobs)
		}
	}
}

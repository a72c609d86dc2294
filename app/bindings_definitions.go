package app

import (
	"go.uber.org/fx"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/persons"
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

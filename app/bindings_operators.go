package app

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/changes/changelog"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/ingestion/delivery"
	"github.com/guidonhq/guidon/core/ingestion/delivery/filter"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/sdk"
)

// describer returns the operators of a bundled matcher that has never run.
type describer func(name string) []sdk.Operator

// operatorBindings binds plugin operators to the matchers of the host. Stored flags and
// actions are compiled again when operators change.
var operatorBindings = fx.Options(
	local(fx.Provide(fx.Annotate(newOperators, fx.OnStart((*operators.Operators).Start), fx.OnStop((*operators.Operators).Stop)))),
	fx.Provide(
		func(o *operators.Operators) match.Registry { return o },
		func(o *operators.Operators) decide.Matchers { return o },
		func(o *operators.Operators) flags.PluginOperators {
			return flags.PluginOperators{ForSave: o.ForSave(), Round: func() eval.PluginRound { return o.NewRound() }}
		},
		func(o *operators.Operators) filter.Matchers { return sinkMatchers{o} },
		func(o *operators.Operators) func() actionmatch.Plugins {
			return func() actionmatch.Plugins { return o.NewRound() }
		},
	),
	fx.Invoke(func(o *operators.Operators, s *decide.Snapshots, m *actions.Snapshots, log *zap.Logger) {
		o.OnChange(func(ctx context.Context) {
			if err := errors.Join(s.RefreshAll(ctx), m.RefreshAll(ctx)); err != nil && ctx.Err() == nil {
				log.Warn("refresh after change of plugin operators failed", zap.Error(err))
			}
		})
	}),
	fx.Invoke(func(d *delivery.Service, m filter.Matchers) { d.UseMatchers(m) }),
	// Clients that follow changes ask again when plugins come and go.
	fx.Invoke(func(o *operators.Operators, known *decide.LastKnown, c *changelog.Store) {
		o.OnAnswers(func(ctx context.Context) error { return c.RecordOperators(ctx, known.WithPluginOperators()) })
	}),
)

// sinkMatchers binds the property filters of sinks to plugin operators. A delivery waits
// for a plugin, so that values are compiled as for a save.
type sinkMatchers struct{ o *operators.Operators }

func (m sinkMatchers) Operator(id string) (match.ExternalOperator, bool) {
	return m.o.ForSave().Operator(id)
}

func (m sinkMatchers) NewRound() filter.Round { return m.o.NewRound() }

func newOperators(cfg operators.Config, h *host.Host, d describer, log *zap.Logger, reg prometheus.Registerer) (*operators.Operators, error) {
	return operators.New(cfg, func() []operators.Matcher {
		instances := h.Matchers()
		out := make([]operators.Matcher, len(instances))
		for i := range instances {
			out[i] = instances[i]
		}
		return out
	}, d, log, reg)
}

package app

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/actions"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/sdk"
)

// describer returns what a bundled matcher offers before it was ever started.
type describer func(name string) []sdk.Operator

// operatorBindings says who answers for the operators of plugins: the matchers the
// host runs. What is stored is compiled again when they have changed.
var operatorBindings = fx.Options(
	fx.Provide(
		fx.Annotate(newOperators, fx.OnStart((*operators.Operators).Start), fx.OnStop((*operators.Operators).Stop)),
		func(o *operators.Operators) match.Registry { return o },
		func(o *operators.Operators) decide.Matchers { return o },
		func(o *operators.Operators) func() actionmatch.Plugins {
			return func() actionmatch.Plugins { return o.NewRound() }
		},
	),
	fx.Invoke(func(o *operators.Operators, s *decide.Snapshots, m *actions.Memory, log *zap.Logger) {
		o.OnChange(func(ctx context.Context) {
			if err := errors.Join(s.RefreshAll(ctx), m.RefreshAll(ctx)); err != nil && ctx.Err() == nil {
				log.Warn("operators of plugins have changed, and not all flags and actions could be read again", zap.Error(err))
			}
		})
	}),
)

func newOperators(cfg operators.Config, h *host.Host, d describer, log *zap.Logger, reg prometheus.Registerer) (*operators.Operators, error) {
	return operators.New(cfg, func() []operators.Matcher {
		instances := h.Matchers()
		out := make([]operators.Matcher, len(instances))
		for i := range instances {
			out[i] = matcher{instances[i]}
		}
		return out
	}, d, log, reg)
}

// matcher shows operators an instance the host runs.
type matcher struct{ *host.MatcherInstance }

func (m matcher) Program(o sdk.Operator, value []byte) (operators.Program, error) {
	p, err := wire.NewMatchProgram(o, value)
	return operators.Program(p), err
}

func (m matcher) Compile(ctx context.Context, p operators.Program) (operators.Compiled, error) {
	results, err := m.MatcherInstance.Compile(ctx, []wire.MatchProgram{wire.MatchProgram(p)})
	if err != nil {
		return operators.Compiled{}, err
	}
	out := operators.Compiled{OK: results[0].OK, Reads: results[0].Reads}
	for _, d := range results[0].Problems {
		out.Problems = append(out.Problems, operators.Problem{Pointer: d.Pointer, Summary: d.Summary})
	}
	return out, nil
}

func (m matcher) Match(ctx context.Context, b *operators.Batch) (operators.Answer, error) {
	batch := &wire.MatchBatch{
		Programs: make([]wire.MatchProgram, len(b.Programs)), Values: b.Values, Pairs: make([]wire.MatchPair, len(b.Pairs)), Now: b.Now,
	}
	for i := range b.Programs {
		batch.Programs[i] = wire.MatchProgram(b.Programs[i])
	}
	for i := range b.Pairs {
		batch.Pairs[i] = wire.MatchPair(b.Pairs[i])
	}
	said, err := m.MatchBatch(ctx, batch)
	if err != nil {
		return operators.Answer{}, err
	}
	return operators.Answer{Verdicts: said.Verdicts, DataVersion: said.DataVersion, TTL: said.TTL}, nil
}

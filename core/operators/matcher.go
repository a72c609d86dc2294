package operators

import (
	"context"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/sdk"
)

// Matcher is a configured matcher plugin in any state. *host.MatcherInstance
// implements it.
type Matcher interface {
	// Name is the instance's name in the configuration, Use the plugin.
	Name() string
	Use() string
	// Operators returns the operators of the last opening. version grows with each
	// opening and is 0 before the first.
	Operators() (operators []sdk.Operator, version uint64)
	// Available reports whether the plugin can be called now; Ready waits until it
	// can, or ctx ends.
	Available() bool
	Ready(ctx context.Context) error
	// DataVersion is the version of the plugin's data, as it last reported.
	DataVersion() string
	// Compile checks values and returns a result for each. An error means that the
	// call failed.
	Compile(ctx context.Context, programs []wire.MatchProgram) ([]wire.Compiled, error)
	// MatchBatch returns a verdict for each pair, at the end of ctx at the latest.
	// It does not retain b. An error means that all verdicts are unknown.
	MatchBatch(ctx context.Context, b *wire.MatchBatch) (*wire.MatchAnswer, error)
}

var _ Matcher = (*host.MatcherInstance)(nil)

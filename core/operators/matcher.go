package operators

import (
	"context"
	"encoding/json"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// Matcher is a configured matcher plugin, whatever state it is in.
type Matcher interface {
	// Name is the instance's name in the config, Use the plugin it is of.
	Name() string
	Use() string
	// Operators returns what the plugin offered when it was last opened; version
	// grows with each opening and is 0 before the first.
	Operators() (operators []sdk.Operator, version uint64)
	// Available reports whether the plugin can be asked now; Ready waits until
	// it can, or ctx ends.
	Available() bool
	Ready(ctx context.Context) error
	// DataVersion names the data of the plugin, as it last said.
	DataVersion() string
	// Program names the value of a filter for an operator; it fails when the
	// value is not JSON.
	Program(o sdk.Operator, value []byte) (Program, error)
	// Compile asks whether a value makes sense. The error says that the plugin
	// could not be asked.
	Compile(ctx context.Context, p Program) (Compiled, error)
	// Match asks for a verdict on each pair. It returns when ctx ends at the
	// latest, and keeps nothing of b. The error says that nothing is known.
	Match(ctx context.Context, b *Batch) (Answer, error)
}

// Program is the value of a filter for an operator.
type Program struct {
	ID       [32]byte // the same on every node and after every restart
	Operator string
	Value    json.RawMessage // compact
}

// Compiled is what a plugin says of a value.
type Compiled struct {
	OK       bool
	Problems []Problem
	Reads    []string // the properties it looks at instead of the filter's own
}

// Problem is what is wrong at a place in a value.
type Problem struct{ Pointer, Summary string }

// Batch is questions to one plugin: indexes of programs and values, each of
// which is there once.
type Batch struct {
	Programs []Program
	Values   []json.RawMessage
	Pairs    []Pair
	Now      time.Time
}

// Pair is indexes into a Batch.
type Pair struct{ Program, Value uint32 }

// Answer has a verdict for each pair.
type Answer struct {
	Verdicts    []sdk.Verdict
	DataVersion string
	TTL         time.Duration // 0 leaves it to the operators
}

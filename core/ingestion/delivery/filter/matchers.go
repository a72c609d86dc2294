package filter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/sdk"
)

// Matchers are the operators of matcher plugins for property filters.
type Matchers interface {
	match.Registry
	// NewRound returns the evaluation of one chunk of events.
	NewRound() Round
}

// Round evaluates pairs in two passes: Match collects them, Ask calls the plugins, and
// then Match returns the results.
type Round interface {
	match.External
	// Ask calls the plugins for the collected pairs. It reports whether there were any.
	Ask(ctx context.Context) bool
	// Unanswered returns the plugin and the reason of a call without an answer, or "".
	Unanswered() string
}

// ErrInvalid is wrapped by the error of Evaluate about a section that must change. Other
// errors end when a matcher answers.
var ErrInvalid = errors.New("invalid filter")

// Evaluate compiles the section with the plugins as they are now, asks them about the
// events, and returns the filter and the environment for Apply. It fails if a plugin does
// not answer: an event is neither left out nor sent because a plugin is away. matchers may
// be nil.
func Evaluate(ctx context.Context, c settings.Delivery, matchers Matchers, events []sdk.Event) (*Filter, *match.Env, error) {
	if matchers == nil {
		return nil, nil, errors.New("this server has no matchers")
	}
	f, err := New(c, matchers)
	switch {
	case fault.CodeOf(err) == "invalid_operator":
		return nil, nil, fmt.Errorf("no matcher has the operator: %w", err)
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	case f.Open() != "":
		return nil, nil, fmt.Errorf("the matcher of %s does not answer", f.Open())
	}
	round := matchers.NewRound()
	env := &match.Env{Now: time.Now(), External: round}
	f.Collect(events, env)
	round.Ask(ctx)
	if why := round.Unanswered(); why != "" {
		return nil, nil, fmt.Errorf("a matcher did not answer: %s", why)
	}
	return f, env, nil
}

// Reason returns why the section leaves an event out, as it is now: event, project, property or
// sample; "" if it does not. It fails as Evaluate does.
func Reason(ctx context.Context, c settings.Delivery, matchers Matchers, ev *sdk.Event) (string, error) {
	f, err := New(c, nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	env := &match.Env{Now: time.Now()}
	if f.External() {
		if f, env, err = Evaluate(ctx, c, matchers, []sdk.Event{*ev}); err != nil {
			return "", err
		}
	}
	return f.rejectReason(ev, env), nil
}

package host

import (
	"context"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/sdk"
)

// kindHandler is what differs between the kinds of plugins, as the supervisor uses
// it. SinkInstance, NotifierInstance and MatcherInstance implement it.
type kindHandler interface {
	// open opens the instance in a session. It changes nothing else, because
	// another session may be serving. It returns the result, the plugin's refusal
	// or the error of the call; all nil is an answer without an outcome.
	open(ctx context.Context, s *conn.Session) (*openResult, *sdk.Error, error)
	// handOver commits what a session has staged. It is called before the open of
	// the next session, and again when no caller uses the old one any more.
	handOver(ctx context.Context, s *conn.Session)
	// onEnd is called after the end of a session.
	onEnd(s *conn.Session)
}

// openResult is an instance that was opened.
type openResult struct {
	// commit makes the reported properties the current ones.
	commit func()
	// compatible is true when callers may use the old session and this one at the
	// same time: the properties are equal and nothing is staged.
	compatible bool
}

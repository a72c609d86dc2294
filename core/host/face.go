package host

import (
	"context"

	"github.com/guidonhq/guidon/sdk"
)

// face is an instance as the rest of the server sees it, from the supervisor's
// side: what a kind of plugin does at the turns of its life.
type face interface {
	// open opens the instance in a session and changes nothing else: another
	// session may be serving. Either the opening, or the plugin's refusal, or
	// the failure of the call; all three nil is an answer without an outcome.
	open(ctx context.Context, s *session) (*opening, *sdk.Error, error)
	// handOver makes safe what a session keeps. It is called before its successor
	// is opened, and again when it is and nobody calls the old one any more.
	handOver(ctx context.Context, s *session)
	// left is called when a session is over.
	left(s *session)
}

// opening is an instance that was opened.
type opening struct {
	// adopt makes what the plugin said of itself count.
	adopt func()
	// alike says that calls may go to the old session and to this one at the
	// same time: it wants to be fed as the old one did and keeps nothing.
	alike bool
}

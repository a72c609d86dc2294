package greeting

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/signin"
)

// Link signs a user in to the console once, until it ends.
type Link struct {
	URL string // "": none
	End time.Time
}

// Links makes links.
type Links struct {
	DB       *db.DB
	Console  bool          // the server has the console
	URL      func() string // of the console
	Lifetime time.Duration
}

// New makes a link for the user with an e-mail address. It returns the zero Link for a server
// without the console, and if the link cannot be made.
func (l Links) New(ctx context.Context, email string) Link {
	if !l.Console {
		return Link{}
	}
	token, end, _, err := signin.NewLinkIn(ctx, l.DB, l.Lifetime, email, false)
	if err != nil {
		return Link{}
	}
	return Link{l.URL() + "/sign-in#link=" + token, end}
}

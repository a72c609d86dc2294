package greeting

import (
	"context"
	"slices"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/signin"
	"github.com/guidonhq/guidon/core/web"
)

// SignInLink makes a link that signs the user with an address in to the console once. It
// returns "" for a server without the console, and if the link cannot be made.
func SignInLink(ctx context.Context, d *db.DB, url string, routes []web.Route, email string) string {
	const path = "/sign-in"
	if !slices.ContainsFunc(routes, func(r web.Route) bool { return r.Path == path && !r.Admin }) {
		return ""
	}
	token, _, _, err := signin.NewLinkIn(ctx, d, signin.DefaultConfig().LinkLifetime, email, false)
	if err != nil {
		return ""
	}
	return url + path + "#link=" + token
}

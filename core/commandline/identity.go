package commandline

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"strings"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web"
)

// Identity is the right of a command to administer one organization through a server
// within its own process. Its key is random, stored nowhere and valid in this process
// only.
type Identity struct {
	key       string
	principal *auth.Principal
}

// NewIdentity returns an identity that works in the project. Its changes are entries of
// the command line in the activity log.
func NewIdentity(p auth.Project) *Identity {
	who := *activity.CommandLine
	who.User.Operator = true
	who.OrganizationID, who.OrgLevel, who.Scopes, who.CurrentProjectID = p.OrganizationID, auth.LevelOwner, []string{"*"}, p.ID
	return &Identity{key: "phx_" + rand.Text(), principal: &who}
}

// Key returns the key to send with requests.
func (i *Identity) Key() string { return i.key }

// Auth authenticates the key of an identity, and all others as the Auth within does.
type Auth struct {
	web.Auth
	Identity *Identity
}

// PrincipalByKey implements web.Auth.
func (a Auth) PrincipalByKey(ctx context.Context, key string) (*auth.Principal, error) {
	if subtle.ConstantTimeCompare([]byte(strings.TrimSpace(key)), []byte(a.Identity.key)) == 1 {
		return a.Identity.principal, nil
	}
	return a.Auth.PrincipalByKey(ctx, key)
}

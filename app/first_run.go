package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
)

// greet prints the keys of a first run. On later starts it prints how to get a
// personal key as long as none was ever used, since the output of the first run
// may be lost. It never prints or replaces an existing personal key: the secret
// is not stored, and an unused key may be somewhere in a vault.
func (s *Server) greet(ctx context.Context, out io.Writer) {
	if s.First != nil {
		printCredentials(out, s.URL, s.First)
		return
	}
	user, err := unusedFirstUser(ctx, s.accounts)
	if err != nil {
		s.log.Warn("use of the first personal key unknown", zap.Error(err))
	}
	if user != 0 {
		_, _ = fmt.Fprintf(out, unusedKeyText, user, user)
	}
}

const unusedKeyText = `
The personal key of the first run was never used. If it is lost, make another
with the same configuration, and revoke the old one:

  guidon key create --user %d
  guidon key list --user %d

`

// unusedFirstUser returns the id of the only user if the user has personal keys
// and never used one; 0 otherwise.
func unusedFirstUser(ctx context.Context, a *auth.Service) (int64, error) {
	users, err := a.Users(ctx)
	if err != nil || len(users) != 1 {
		return 0, err
	}
	keys, err := a.PersonalKeys(ctx, users[0].ID)
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	for _, k := range keys {
		if !k.LastUsedAt.IsZero() {
			return 0, nil
		}
	}
	return users[0].ID, nil
}

// printCredentials prints the keys of a first run with commands that work as
// pasted.
func printCredentials(out io.Writer, url string, c *auth.Credentials) {
	text := strings.NewReplacer("{url}", url, "{project}", c.ProjectKey, "{personal}", c.PersonalKey).Replace(firstRunText)
	_, _ = io.WriteString(out, text)
}

const firstRunText = `
Guidon has set up an organization, project 1 and an administrator.
These keys are shown only now; keep them.

  project key   {project}   (public: for clients that capture and decide)
  personal key  {personal}   (secret: for the management API)

Capture an event, create a flag, evaluate it for a user:

  curl -X POST {url}/capture/ -H 'Content-Type: application/json' \
    -d '{"api_key": "{project}", "event": "signed up", "distinct_id": "ada"}'

  curl -X POST {url}/api/projects/1/feature_flags/ -H 'Authorization: Bearer {personal}' -H 'Content-Type: application/json' \
    -d '{"key": "new-nav", "filters": {"groups": [{"properties": [], "rollout_percentage": 50}]}}'

  curl -X POST '{url}/decide?v=3' -H 'Content-Type: application/json' \
    -d '{"api_key": "{project}", "distinct_id": "ada"}'

`

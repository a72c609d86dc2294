// Package greeting has the texts that a server prints for the operator when it starts.
package greeting

import (
	"fmt"
	"io"
	"strings"

	"github.com/guidonhq/guidon/core/auth"
)

// UnusedKey prints how to replace the personal key of the first run, which the user
// never used.
func UnusedKey(out io.Writer, user int64) { _, _ = fmt.Fprintf(out, unusedKeyText, user, user) }

const unusedKeyText = `
The personal key of the first run was never used. If it is lost, make another
with the same configuration, and revoke the old one:

  guidon key create --user %d
  guidon key list --user %d

A link that signs you in to the console: guidon user login-link EMAIL

`

// FirstRun prints the keys of a first run with commands that work as
// pasted, after the link to sign in with, unless there is none.
func FirstRun(out io.Writer, url string, c *auth.Credentials, link Link) {
	if link.URL != "" {
		_, _ = fmt.Fprintf(out, "\nOpen the console; the link works once, until %s:\n\n  %s\n", link.End.UTC().Format("15:04 UTC"), link.URL)
	}
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
    -d '{"key": "new-nav", "filters": {"groups": [{"properties": [], "rollout_percentage": 100}]}}'

  curl -X POST '{url}/decide?v=3' -H 'Content-Type: application/json' \
    -d '{"api_key": "{project}", "distinct_id": "ada"}'

`

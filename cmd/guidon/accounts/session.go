package accounts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

const (
	ownSessionsPath = "/api/users/@me/sessions/"
	allSessionsPath = "/api/organizations/@current/sessions/"
)

// SessionCommands are the commands on sessions of browsers.
type SessionCommands struct {
	List   sessionListCmd   `cmd:"" help:"List the sessions of the user of the key, or of all members."`
	Revoke sessionRevokeCmd `cmd:"" help:"End a session: its browser has to sign in again."`
}

// session is a session in an answer.
type session struct {
	ID       int64
	Method   string
	Agent    string    `json:"user_agent"`
	Client   string    `json:"client"`
	Created  time.Time `json:"created_at"`
	LastSeen time.Time `json:"last_seen_at"`
	User     *struct{ Email string }
}

// sessionsPath is the path of the sessions of the user, or of all members of the organization.
func sessionsPath(all bool) string {
	if all {
		return allSessionsPath
	}
	return ownSessionsPath
}

type sessionListCmd struct {
	command.Remote `embed:""`
	All            bool `help:"Of all members of the organization, for admins."`
}

// Run prints the sessions that have not ended.
func (c sessionListCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	texts, err := client.All(context.Background(), sessionsPath(c.All), nil, 0)
	if err != nil {
		return err
	}
	return command.List(c.Remote, e, texts, "ID USER METHOD CLIENT CREATED SEEN BROWSER", func(s session) []any {
		user := ""
		if s.User != nil {
			user = s.User.Email
		}
		return []any{s.ID, command.OrDash(user), s.Method, command.OrDash(s.Client), command.FormatTime(s.Created), command.FormatTime(s.LastSeen), command.OrDash(s.Agent)}
	})
}

type sessionRevokeCmd struct {
	command.Remote `embed:""`
	command.Change `embed:""`
	ID             int64 `arg:"" help:"Id of the session."`
	All            bool  `help:"A session of any member of the organization, for admins."`
}

// Run ends a session after a question.
func (c sessionRevokeCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	texts, err := client.All(context.Background(), sessionsPath(c.All), nil, 0)
	if err != nil {
		return err
	}
	for _, text := range texts {
		var s session
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		if s.ID != c.ID {
			continue
		}
		what := fmt.Sprintf("end session %d, last used %s by %s", s.ID, command.FormatTime(s.LastSeen), output.Clean(command.OrDash(s.Agent)))
		if ok, err := c.Proceed(e, what); !ok {
			return err
		}
		if err := client.Do(context.Background(), http.MethodDelete, sessionsPath(c.All)+strconv.FormatInt(c.ID, 10)+"/", nil, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(e.Out, "session %d has ended\n", c.ID)
		return err
	}
	return command.NotFound("there is no session %d: session list prints them", c.ID)
}

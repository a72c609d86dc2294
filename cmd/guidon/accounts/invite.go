package accounts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

const (
	invitesPath = "/api/organizations/@current/invites/"
	membersPath = "/api/organizations/@current/members/"
)

// levelNumbers are the levels of the API.
var levelNumbers = map[string]int{"member": 1, "admin": 8, "owner": 15}

// invite is an invitation in an answer.
type invite struct {
	ID      string
	Email   string `json:"target_email"`
	Name    string `json:"first_name"`
	Level   int
	Expired bool      `json:"is_expired"`
	Expires time.Time `json:"expires_at"`
	Token   string
	URL     string `json:"accept_url"`
}

type userInviteCmd struct {
	command.Remote `embed:""`
	Email          string `arg:"" help:"E-mail address."`
	Role           string `enum:"member,admin,owner" default:"member" aliases:"level" help:"member, admin or owner."`
	Name           string `help:"First name."`
}

// Run makes an invitation and prints the command that accepts it. With email.host the server
// sends a link by e-mail, too.
func (c userInviteCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	var text json.RawMessage
	fields := map[string]any{"target_email": c.Email, "level": levelNumbers[c.Role]}
	if c.Name != "" {
		fields["first_name"] = c.Name
	}
	if err := client.Do(context.Background(), http.MethodPost, invitesPath, fields, &text); err != nil {
		return err
	}
	var i invite
	if err := json.Unmarshal(text, &i); err != nil {
		return err
	}
	if c.Output != output.Table {
		var all any
		if err := output.Decode(text, &all); err != nil {
			return err
		}
		return c.PrintOne(e, all)
	}
	base, _, _ := strings.Cut(i.URL, "/api/signup/")
	_, err = fmt.Fprintf(e.Out, "invitation of %s as %s, valid until %s. Hand this over; it works once:\n\n  guidon login %s --invite %s.%s\n\n",
		output.Clean(i.Email), c.Role, i.Expires.Local().Format(time.DateTime+" MST"), base, i.ID, i.Token)
	return err
}

// openInvites returns a client and the open invitations of the organization.
func openInvites(r command.Remote, e *command.Env) (*remote.Client, []json.RawMessage, error) {
	client, err := r.Connect(e)
	if err != nil {
		return nil, nil, err
	}
	texts, err := client.All(context.Background(), invitesPath, nil, 0)
	return client, texts, err
}

type userInvitesCmd struct {
	command.Remote `embed:""`
}

func (c userInvitesCmd) Run(e *command.Env) error {
	_, texts, err := openInvites(c.Remote, e)
	if err != nil {
		return err
	}
	return command.List(c.Remote, e, texts, "ID EMAIL NAME ROLE EXPIRES STATE", func(i invite) []any {
		state := "open"
		if i.Expired {
			state = "expired"
		}
		return []any{i.ID, i.Email, command.OrDash(i.Name), levelName(i.Level), command.FormatTime(i.Expires), state}
	})
}

type userUninviteCmd struct {
	command.Remote `embed:""`
	command.Change `embed:""`
	Invite         string `arg:"" help:"Id of the invitation, or the e-mail address."`
}

func (c userUninviteCmd) Run(e *command.Env) error {
	client, texts, err := openInvites(c.Remote, e)
	if err != nil {
		return err
	}
	for _, text := range texts {
		var i invite
		if err := json.Unmarshal(text, &i); err != nil {
			return err
		}
		if i.ID != c.Invite && !strings.EqualFold(i.Email, c.Invite) {
			continue
		}
		if ok, err := c.Proceed(e, fmt.Sprintf("delete the invitation of %s as %s: its token is refused", output.Clean(i.Email), levelName(i.Level))); !ok {
			return err
		}
		if err := client.Do(context.Background(), http.MethodDelete, invitesPath+url.PathEscape(i.ID)+"/", nil, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(e.Out, "the invitation of %s is deleted\n", output.Clean(i.Email))
		return err
	}
	return command.NotFound("there is no open invitation %q: user invites lists them", c.Invite)
}

// memberArg names a member of the organization of the key.
type memberArg struct {
	command.Remote `embed:""`
	command.Change `embed:""`
	User           string `arg:"" help:"E-mail address or id of the user."`
}

// find returns a client and the member.
func (a memberArg) find(e *command.Env) (*remote.Client, member, error) {
	client, err := a.Connect(e)
	if err != nil {
		return nil, member{}, err
	}
	all, err := members(client, "")
	if err != nil {
		return nil, member{}, err
	}
	for _, m := range all {
		if strings.EqualFold(m.Email, a.User) || fmt.Sprint(m.ID) == a.User {
			return client, m, nil
		}
	}
	return nil, member{}, command.NotFound("the organization has no member %q: user list prints them", a.User)
}

func (m member) path() string { return fmt.Sprintf("%s%d/", membersPath, m.ID) }

type userRoleCmd struct {
	memberArg
	Role string `arg:"" enum:"member,admin,owner" help:"member, admin or owner."`
}

// Run changes the level of a member. Only a lower one needs a confirmation.
func (c userRoleCmd) Run(e *command.Env) error {
	client, m, err := c.find(e)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("make %s, who is %s, %s of the organization", output.Clean(m.Email), m.Level, c.Role)
	if levelNumbers[c.Role] >= levelNumbers[m.Level] && !c.DryRun {
		c.Yes = true
	}
	if ok, err := c.Proceed(e, what); !ok {
		return err
	}
	if err := client.Do(context.Background(), http.MethodPatch, m.path(), map[string]any{"level": levelNumbers[c.Role]}, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "%s is %s\n", output.Clean(m.Email), c.Role)
	return err
}

type userRemoveCmd struct{ memberArg }

// Run removes a member from the organization.
func (c userRemoveCmd) Run(e *command.Env) error {
	client, m, err := c.find(e)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("remove %s (%s) from the organization and its roles: their personal keys for it are refused; what they have created stays", output.Clean(m.Email), m.Level)
	if ok, err := c.Proceed(e, what); !ok {
		return err
	}
	if err := client.Do(context.Background(), http.MethodDelete, m.path(), nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "%s is removed\n", output.Clean(m.Email))
	return err
}

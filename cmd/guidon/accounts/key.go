package accounts

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/command"
)

// KeyCommands are the commands on keys.
type KeyCommands struct {
	Create keyCreateCmd `cmd:"" help:"Create a project key (--project), a secret key (--project and --secret) or a personal key (--user) and print it."`
	List   keyListCmd   `cmd:"" help:"List the keys of a project or of a user."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key by its id."`
	Rotate keyRotateCmd `cmd:"" help:"Replace the secret of a project, or of one of its secret keys, and print the new one."`
}

type keyCreateCmd struct {
	command.Place `embed:""`
	keyOwner      `embed:""`
	Label         string   `default:"command line" help:"Label of the key."`
	Secret        bool     `help:"Create a secret key (phs_) of the project, for server-side clients."`
	Key           string   `help:"Existing project key to take over, for clients that already send it."`
	Scopes        []string `default:"*" help:"Scopes, for example feature_flag:read; by default * for everything the user may do, and feature_flag:read for a secret key."`
	Expires       string   `help:"Time after which a personal key or a secret key is refused: 90d, 12h or a date such as 2027-01-31." placeholder:"TIME"`
}

func (c keyCreateCmd) Run(e *command.Env) error {
	expires, err := parseExpiry(c.Expires, time.Now())
	if err != nil {
		return err
	}
	in := newKey{label: c.Label, scopes: c.Scopes, expires: expires}
	public, all := c.Project != 0 && !c.Secret, slices.Equal(c.Scopes, []string{"*"})
	switch {
	case c.Key != "" && !public:
		return errors.New("--key is for project keys: secret keys and personal keys are made at random")
	case public && !all:
		return errors.New("--scopes is for personal keys and secret keys: a project key captures events and evaluates flags")
	case c.Secret && all:
		in.scopes = []string{"feature_flag:read"}
	case public:
		if c.Expires != "" {
			return errors.New("--expires is for personal keys and secret keys: a project key is public, and events sent after its end would be lost")
		}
		in.text, in.scopes = c.Key, nil
	}
	return c.with(e, c.Place, c.Secret, func(k keys) error {
		key, err := k.create(in)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(e.Out, key)
		return err
	})
}

type keyListCmd struct {
	command.Place `embed:""`
	keyOwner      `embed:""`
	Secret        bool `help:"List the secret keys of the project."`
}

func (c keyListCmd) Run(e *command.Env) error {
	return c.with(e, c.Place, c.Secret, func(k keys) error {
		rows, err := k.list()
		if err != nil {
			return err
		}
		return printKeys(e, rows)
	})
}

type keyRevokeCmd struct {
	command.Place  `embed:""`
	command.Change `embed:""`
	keyOwner       `embed:""`
	Secret         bool  `help:"Revoke a secret key of the project."`
	ID             int64 `arg:"" help:"Id of the key, from key list."`
}

func (c keyRevokeCmd) Run(e *command.Env) error {
	return c.with(e, c.Place, c.Secret, func(k keys) error {
		row, others, err := find(k, c.ID)
		if err != nil {
			return err
		}
		kind, used := c.kind(c.Secret), ", last used "+cell(row.Used)
		if kind == "project key" { // the time of use is not kept
			used = ""
		}
		what := fmt.Sprintf("revoke %s %s%s: requests with it are refused; its owner has %s", kind, row.text(), used, command.Plural(others, "other active "+kind))
		if ok, err := c.Proceed(e, what); !ok {
			return err
		}
		if err := k.revoke(c.ID); err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Out, "%s %d is revoked\n", kind, c.ID)
		return err
	})
}

type keyRotateCmd struct {
	command.Place  `embed:""`
	command.Change `embed:""`
	Project        int64 `required:"" help:"Id of the project."`
	ID             int64 `arg:"" optional:"" help:"Id of a secret key, from key list --secret; its old secret is invalid at once. Without it the secret of the project is rotated, and the old one stays valid as the backup."`
}

func (c keyRotateCmd) Run(e *command.Env) error {
	return keyOwner{Project: c.Project}.with(e, c.Place, true, func(k keys) error {
		what := fmt.Sprintf("rotate the secret of project %d: the secret of today stays valid until the next rotation, the one before it is refused", c.Project)
		if c.ID != 0 {
			row, _, err := find(k, c.ID)
			if err != nil {
				return err
			}
			what = fmt.Sprintf("rotate secret key %s, last used %s: its old secret is refused at once", row.text(), cell(row.Used))
		}
		if ok, err := c.Proceed(e, what); !ok {
			return err
		}
		secret, err := k.rotate(c.ID)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(e.Out, secret)
		return err
	})
}

// parseExpiry reads a number of days (90d), a duration (12h) or a date in UTC; an
// empty text is no end.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= 36500 {
			return now.AddDate(0, 0, n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("--expires: %q is not a time such as 90d, 12h or 2027-01-31", text)
}

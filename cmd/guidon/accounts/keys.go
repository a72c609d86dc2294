package accounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

// keys are the keys of one kind of a project or of a user, on a server or in a database.
type keys interface {
	list() ([]keyRow, error)
	// create makes a key and returns its text.
	create(newKey) (string, error)
	revoke(id int64) error
	// rotate replaces the secret of the secret key with the id, or that of the project
	// for 0, and returns the new one.
	rotate(id int64) (string, error)
}

// newKey describes a key to create. Fields that its kind does not have are ignored.
type newKey struct {
	label   string
	text    string // of a project key that exists elsewhere; "" makes one
	scopes  []string
	expires time.Time // zero: never
}

// keyRow is a key of a list.
type keyRow struct {
	ID      int64
	Key     string `json:"key"`
	Mask    string `json:"mask_value"`
	Value   string `json:"value"`
	Label   string
	Kind    string
	Scopes  []string
	Created string `json:"created_at"`
	Used    string `json:"last_used_at"`
	Expires string `json:"expires_at"`
	Revoked string `json:"revoked_at"`
}

// keyOwner selects the keys of a project or of a user.
type keyOwner struct {
	Project int64 `help:"Id of the project that owns the key." xor:"owner"`
	User    int64 `help:"Id of the user who owns the key." xor:"owner"`
}

func (o keyOwner) AfterApply() error {
	if o.Project == 0 && o.User == 0 {
		return errors.New("name the owner of the key: --project or --user")
	}
	return nil
}

// kind returns the noun of the keys.
func (o keyOwner) kind(secret bool) string {
	switch {
	case secret:
		return "secret key"
	case o.Project != 0:
		return "project key"
	}
	return "personal key"
}

// errSecretOfUser rejects --secret without --project.
var errSecretOfUser = errors.New("--secret is for keys of a project: name it with --project")

// with calls do with the keys of the owner in a place.
func (o keyOwner) with(e *command.Env, place command.Place, secret bool, do func(keys) error) error {
	if secret && o.Project == 0 {
		return errSecretOfUser
	}
	client, err := place.Client(e, o.Project)
	if err != nil {
		return err
	}
	if client != nil {
		k, err := newServerKeys(client, o, secret)
		if err != nil {
			return err
		}
		return do(k)
	}
	return withAdmin(e, func(ctx context.Context, a *app.Admin) error {
		return do(databaseKeys{ctx, a, o, secret})
	})
}

// find returns the key with the id and the number of other active keys.
func find(k keys, id int64) (found keyRow, others int, err error) {
	rows, err := k.list()
	if err != nil {
		return found, 0, err
	}
	exists := false
	for _, r := range rows {
		switch {
		case r.ID == id:
			found, exists = r, true
		case r.state() == active:
			others++
		}
	}
	if !exists {
		return found, 0, command.NotFound("there is no key with the id %d: key list prints the ids", id)
	}
	return found, others, nil
}

// activeKeys returns how many keys are active.
func activeKeys(k keys) (n int, err error) {
	rows, err := k.list()
	for _, r := range rows {
		if r.state() == active {
			n++
		}
	}
	return n, err
}

// text returns the name of the key for a question.
func (r keyRow) text() string {
	return fmt.Sprintf("%d (%s, %s)", r.ID, output.Clean(r.Label), output.Clean(cmp.Or(r.Mask, r.Key)))
}

const active = "active"

// state returns active, expired or the time of the revocation.
func (r keyRow) state() string {
	if r.Revoked != "" {
		return "revoked " + cell(r.Revoked)
	}
	if at, err := time.Parse(time.RFC3339, r.Expires); err == nil && !time.Now().Before(at) {
		return "expired"
	}
	return active
}

// cell returns a time of the API for a table.
func cell(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return command.OrDash(text)
	}
	return command.FormatTime(at)
}

// printKeys prints a list of keys.
func printKeys(e *command.Env, rows []keyRow) error {
	cells := make([][]any, len(rows))
	for i, k := range rows {
		cells[i] = []any{
			k.ID, cmp.Or(k.Key, k.Mask), k.Label, command.OrDash(k.Kind), command.OrDash(strings.Join(k.Scopes, ",")), cell(k.Created), cell(k.Used), cell(k.Expires), k.state(),
		}
	}
	return output.Rows(e.Out, strings.Fields("ID KEY LABEL KIND SCOPES CREATED USED EXPIRES STATE"), cells)
}

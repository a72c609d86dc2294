package accounts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// serverKeys are the keys of an owner on a server.
type serverKeys struct {
	client *remote.Client
	path   string // of the list
}

// personalKeys is the path of the personal keys of the user of a key.
const personalKeys = "/api/personal_api_keys/"

// newServerKeys returns the keys of the owner. A server shows the personal keys of the
// user of the key only.
func newServerKeys(c *remote.Client, o keyOwner, secret bool) (serverKeys, error) {
	switch {
	case secret:
		return serverKeys{c, c.Project("project_secret_api_keys/")}, nil
	case o.Project != 0:
		return serverKeys{c, c.Project("keys/")}, nil
	}
	var me struct{ ID int64 }
	err := c.Do(context.Background(), http.MethodGet, "/api/users/@me/", nil, &me)
	if err == nil && me.ID != o.User {
		err = fmt.Errorf("--user: a server manages the personal keys of your own user only, %d; --local opens the database", me.ID)
	}
	return serverKeys{c, personalKeys}, err
}

func (k serverKeys) list() ([]keyRow, error) {
	texts, err := k.client.All(context.Background(), k.path, nil, 0)
	rows := make([]keyRow, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal(text, &rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, err
}

func (k serverKeys) create(in newKey) (string, error) {
	fields := map[string]any{"label": in.label}
	if in.text != "" {
		fields["key"] = in.text
	}
	if in.scopes != nil {
		fields["scopes"] = in.scopes
	}
	if !in.expires.IsZero() {
		fields["expires_at"] = in.expires.UTC().Format(time.RFC3339)
	}
	var made keyRow
	err := k.client.Do(context.Background(), http.MethodPost, k.path, fields, &made)
	return cmp.Or(made.Value, made.Key), err
}

func (k serverKeys) at(id int64, more string) string { return fmt.Sprintf("%s%d/%s", k.path, id, more) }

func (k serverKeys) revoke(id int64) error {
	return k.client.Do(context.Background(), http.MethodDelete, k.at(id, ""), nil, nil)
}

func (k serverKeys) rotate(id int64) (string, error) {
	var made struct {
		Value  string
		Secret string `json:"secret_api_token"`
	}
	method, path := http.MethodPatch, k.client.Project("rotate_secret_token/")
	if id != 0 {
		method, path = http.MethodPost, k.at(id, "roll/")
	}
	err := k.client.Do(context.Background(), method, path, nil, &made)
	return cmp.Or(made.Value, made.Secret), err
}

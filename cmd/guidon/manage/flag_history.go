package manage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

type flagHistoryCmd struct {
	command.Remote `embed:""`
	FlagKey        string `arg:"" name:"flag" help:"Key of the flag."`
	Limit          int    `short:"n" default:"50" help:"Number of changes, at most 1000."`
}

// activity is an entry of the activity log.
type activity struct {
	User struct {
		Name   string `json:"first_name"`
		Email  *string
		System bool `json:"is_system"`
	}
	Activity string
	At       time.Time `json:"created_at"`
	Detail   struct {
		Changes []struct {
			Field, Action string
			Before, After any
		}
	}
}

// Run prints the changes, newest first, with the version after each if the log has all
// of them.
func (c flagHistoryCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	f, _, err := findFlag(context.Background(), client, c.FlagKey)
	if err != nil {
		return err
	}
	var page struct {
		Results []json.RawMessage
		Total   int64 `json:"total_count"`
	}
	if err := client.Do(context.Background(), http.MethodGet, flagPath(client, f.ID, fmt.Sprintf("activity/?limit=%d", c.Limit)), nil, &page); err != nil {
		return err
	}
	all := make([]any, len(page.Results))
	rows := make([][]any, len(page.Results))
	for i, text := range page.Results {
		var a activity
		if err := json.Unmarshal(text, &a); err != nil {
			return err
		}
		if err := output.Decode(text, &all[i]); err != nil {
			return err
		}
		version := "-"
		if page.Total == f.Version { // every change is in the log, and made one version
			version = strconv.FormatInt(f.Version-int64(i), 10)
		}
		rows[i] = []any{a.At.Local().Format(time.DateTime), version, a.who(), a.Activity, output.OneLine(a.what(), 160)}
	}
	return c.Print(e, all, "TIME VERSION WHO ACTIVITY CHANGES", rows)
}

func (a activity) who() string {
	if a.User.Email != nil && *a.User.Email != "" {
		return *a.User.Email
	}
	if a.User.System {
		return strings.ToLower(a.User.Name) // system, or command line
	}
	return a.User.Name
}

func (a activity) what() string {
	var changes []string
	for _, change := range a.Detail.Changes {
		changes = append(changes, fmt.Sprintf("%s: %s -> %s", change.Field, compact(change.Before), compact(change.After)))
	}
	return strings.Join(changes, "; ")
}

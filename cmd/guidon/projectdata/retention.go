// Package projectdata has the commands on the data of a project of a running server: how
// long it is kept, how it leaves, and how it comes in.
package projectdata

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// Retention shows or changes how long a project keeps events.
type Retention struct {
	command.Remote `embed:""`
	command.Change `embed:""`
	Keep           string            `help:"Age at which events are deleted: 90d, 36h, 0 for ever, or server for the setting of the server." placeholder:"AGE"`
	Event          map[string]string `help:"The same for the events of a name; project follows the rule of the project. May be repeated." placeholder:"NAME=AGE"`
}

// Help is printed below the options.
func (Retention) Help() string {
	return "The age of an event is that of its timestamp. The rule of the name wins over that of the project, and that over events.retention of the server. Deleted events cannot be restored: --dry-run prints how many a change deletes."
}

type retentionRun struct {
	StartedAt     time.Time  `json:"started_at"`
	FinishedAt    *time.Time `json:"finished_at"`
	DeletedEvents int64      `json:"deleted_events"`
}

type retention struct {
	Keep        *string           `json:"keep"`
	Events      map[string]string `json:"events"`
	ServerKeep  string            `json:"server_keep"`
	OldestEvent *time.Time        `json:"oldest_event"`
	LastRun     *retentionRun     `json:"last_run"`
}

// body returns the change, nil for none.
func (c Retention) body() map[string]any {
	out := map[string]any{}
	switch c.Keep {
	case "":
	case "server":
		out["keep"] = nil
	default:
		out["keep"] = c.Keep
	}
	names := map[string]any{}
	for name, age := range c.Event {
		if names[name] = age; age == "project" {
			names[name] = nil
		}
	}
	if len(names) > 0 {
		out["events"] = names
	}
	return out
}

// Run prints the rules, or changes them after a question with the number of events
// that the change deletes.
func (c Retention) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	ctx, body := context.Background(), c.body()
	if c.DryRun || len(body) > 0 {
		effect, err := c.preview(ctx, client, body)
		if err != nil {
			return err
		}
		if ok, err := c.Proceed(e, "delete "+effect); !ok {
			return err
		}
		if err := client.Do(ctx, http.MethodPatch, client.Project("retention/"), body, nil); err != nil {
			return err
		}
	}
	var r retention
	if err := client.Do(ctx, http.MethodGet, client.Project("retention/"), nil, &r); err != nil {
		return err
	}
	return c.Print(e, r, "EVENTS KEPT RULE", r.rows())
}

func (c Retention) preview(ctx context.Context, client *remote.Client, body map[string]any) (string, error) {
	var p struct {
		Events     int64      `json:"events"`
		OldestKept *time.Time `json:"oldest_kept"`
	}
	if err := client.Do(ctx, http.MethodPost, client.Project("retention/preview/"), body, &p); err != nil {
		return "", err
	}
	text := fmt.Sprintf("%d events", p.Events)
	if p.OldestKept != nil {
		text += "; the oldest event that stays is of " + p.OldestKept.UTC().Format(time.RFC3339)
	}
	return text, nil
}

func (r *retention) rows() [][]any {
	rule, kept := "server", r.ServerKeep
	if r.Keep != nil {
		rule, kept = "project", *r.Keep
	}
	rows := [][]any{{"all", shownAge(kept), rule}}
	for _, name := range slices.Sorted(maps.Keys(r.Events)) {
		rows = append(rows, []any{name, shownAge(r.Events[name]), "name"})
	}
	return rows
}

func shownAge(age string) string {
	if strings.TrimSpace(age) == "0" {
		return "for ever"
	}
	return age
}

package manage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// flagChange is a change of a stored flag.
type flagChange struct {
	command.Remote
	command.Change
	key string
}

// patch sends the fields that change returns for the stored flag, after a question
// that has the number of persons of the flag. does is the verb of the question.
func (c flagChange) patch(e *command.Env, does string, change func(f flag, whole map[string]any) (map[string]any, error)) error {
	return c.send(e, does, func(f flag, whole map[string]any, client *remote.Client) (string, string, map[string]any, error) {
		fields, err := change(f, whole)
		return http.MethodPatch, flagPath(client, f.ID, ""), fields, err
	})
}

// send is patch for any request.
func (c flagChange) send(e *command.Env, does string, request func(flag, map[string]any, *remote.Client) (method, path string, body map[string]any, err error)) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	ctx := context.Background()
	f, whole, err := findFlag(ctx, client, c.key)
	if err != nil {
		return err
	}
	method, path, body, err := request(f, whole, client)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		_, err := fmt.Fprintf(e.Out, "%s: nothing to change\n", f.Key)
		return err
	}
	what := fmt.Sprintf("%s flag %s (version %d, %s)", does, f.Key, f.Version, onOrOff(f.Active))
	if c.DryRun {
		fmt.Fprintf(e.ErrOut, "would %s: %s\n", what, effect(ctx, client, f, body))
		return c.PrintOne(e, body)
	}
	if !c.Yes {
		if err := e.Confirm(what + ": " + effect(ctx, client, f, body)); err != nil { // counts only if it asks
			return err
		}
	}
	return c.apply(e, client, method, path, body)
}

// effect describes the persons that the condition sets of the flag match, and those that
// they match with the filters of the body.
func effect(ctx context.Context, c *remote.Client, f flag, body map[string]any) string {
	before := reach(ctx, c, f.Filters)
	if body["filters"] == nil {
		return "its condition sets reach " + before
	}
	var after filters
	text, err := json.Marshal(body["filters"])
	if err != nil || json.Unmarshal(text, &after) != nil {
		return "its condition sets reach " + before
	}
	return fmt.Sprintf("its condition sets reach %s; with the change, %s", before, reach(ctx, c, after))
}

func (c flagChange) apply(e *command.Env, client *remote.Client, method, path string, body map[string]any) error {
	var answer json.RawMessage
	if err := client.Do(context.Background(), method, path, body, &answer); err != nil {
		return err
	}
	var after map[string]any
	if err := output.Decode(answer, &after); err != nil {
		return err
	}
	if c.Output != output.Table {
		return c.PrintOne(e, after)
	}
	active, _ := after["active"].(bool)
	state := onOrOff(active)
	if deleted, _ := after["deleted"].(bool); deleted {
		state = "deleted"
	}
	_, err := fmt.Fprintf(e.Out, "%s is %s, version %v\n", output.Clean(fmt.Sprint(after["key"])), state, after["version"])
	return err
}

// reach describes how many of the stored persons or groups the condition sets match.
func reach(ctx context.Context, c *remote.Client, f filters) string {
	if len(f.Groups) == 0 {
		return "no persons"
	}
	parts := make([]string, len(f.Groups))
	for i, condition := range f.Groups {
		var counted struct {
			Affected  int64 `json:"users_affected"`
			Total     int64 `json:"total_users"`
			Estimated bool
		}
		body := map[string]any{"condition": condition, "group_type_index": f.GroupType}
		if err := c.Do(ctx, http.MethodPost, c.Project("feature_flags/user_blast_radius/"), body, &counted); err != nil {
			return fmt.Sprintf("persons that could not be counted (%v)", err)
		}
		subject := "persons"
		if f.GroupType != nil {
			subject = "groups"
		}
		about := ""
		if counted.Estimated {
			about = "about "
		}
		parts[i] = fmt.Sprintf("%s%d of %d %s", about, counted.Affected, counted.Total, subject)
		if rollout := rolloutOf(condition); rollout != "100" {
			parts[i] = rollout + " % of " + parts[i]
		}
	}
	return strings.Join(parts, " and ")
}

// rolloutOf returns the rollout of a condition set in percent.
func rolloutOf(condition json.RawMessage) string {
	var set struct {
		Rollout *json.Number `json:"rollout_percentage"`
	}
	if json.Unmarshal(condition, &set) != nil || set.Rollout == nil {
		return "100"
	}
	return set.Rollout.String()
}

// flagArg names the flag of a change.
type flagArg struct {
	command.Remote `embed:""`
	command.Change `embed:""`
	FlagKey        string `arg:"" name:"flag" help:"Key of the flag."`
}

func (a flagArg) change() flagChange { return flagChange{a.Remote, a.Change, a.FlagKey} }

// switchTo sets active.
func (a flagArg) switchTo(e *command.Env, active bool) error {
	return a.change().patch(e, "switch "+onOrOff(active), func(f flag, _ map[string]any) (map[string]any, error) {
		if f.Active == active {
			return nil, nil
		}
		return map[string]any{"active": active}, nil
	})
}

type (
	flagOnCmd     struct{ flagArg }
	flagOffCmd    struct{ flagArg }
	flagDeleteCmd struct{ flagArg }
)

func (c flagOnCmd) Run(e *command.Env) error  { return c.switchTo(e, true) }
func (c flagOffCmd) Run(e *command.Env) error { return c.switchTo(e, false) }

func (c flagDeleteCmd) Run(e *command.Env) error {
	return c.change().patch(e, "delete", func(flag, map[string]any) (map[string]any, error) {
		return map[string]any{"deleted": true}, nil
	})
}

type flagRollbackCmd struct {
	flagArg
	Version int64 `arg:"" help:"Version to return to; flag history lists them."`
}

func (c flagRollbackCmd) Run(e *command.Env) error {
	return c.change().send(e, fmt.Sprintf("roll back to version %d:", c.Version), func(f flag, _ map[string]any, client *remote.Client) (string, string, map[string]any, error) {
		if c.Version < 1 || c.Version >= f.Version {
			return "", "", nil, fmt.Errorf("version %d: flag %s has version %d; name an earlier one", c.Version, f.Key, f.Version)
		}
		return http.MethodPost, flagPath(client, f.ID, "rollback/"), map[string]any{"version": c.Version}, nil
	})
}

// errNoSets is why an option for the rollout cannot be used.
var errNoSets = errors.New("--rollout: the flag has not one condition set; change its filters with --file or in the editor")

// setRollout returns the filters with another rollout of their only condition set.
func setRollout(filters any, percent float64) (map[string]any, error) {
	all, _ := filters.(map[string]any)
	sets, _ := all["groups"].([]any)
	if len(sets) != 1 {
		return nil, errNoSets
	}
	set, ok := sets[0].(map[string]any)
	if !ok {
		return nil, errNoSets
	}
	set["rollout_percentage"] = percent
	return all, nil
}

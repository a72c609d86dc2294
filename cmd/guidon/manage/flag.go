// Package manage has the commands of the command line that call the management API of a
// running server, here or elsewhere: flags, actions, cohorts, persons and events. A
// command is a struct with its flags as fields, and Run, which kong calls with an
// environment.
package manage

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// FlagCommands are the commands on flags.
type FlagCommands struct {
	List     flagListCmd     `cmd:"" help:"List flags, newest first."`
	Get      flagGetCmd      `cmd:"" help:"Print a flag."`
	Create   flagCreateCmd   `cmd:"" help:"Make a flag."`
	Edit     flagEditCmd     `cmd:"" help:"Change a flag by options, by a file or in an editor."`
	On       flagOnCmd       `cmd:"" help:"Switch a flag on."`
	Off      flagOffCmd      `cmd:"" help:"Switch a flag off."`
	Delete   flagDeleteCmd   `cmd:"" help:"Delete a flag."`
	Explain  flagExplainCmd  `cmd:"" help:"Explain the value of a flag for a person, step by step."`
	History  flagHistoryCmd  `cmd:"" help:"Print who changed a flag, when and how."`
	Rollback flagRollbackCmd `cmd:"" help:"Give a flag the state it had at a version."`
}

// flag has the fields of a flag that the commands read.
type flag struct {
	ID      int64
	Key     string
	Name    string
	Active  bool
	Version int64
	Status  string
	Tags    []string
	Updated string `json:"updated_at"`
	Filters filters
}

// filters are the condition sets of a flag.
type filters struct {
	Groups    []json.RawMessage
	GroupType *int64 `json:"aggregation_group_type_index"`
}

// flagPath returns the path of a flag.
func flagPath(c *remote.Client, id int64, more string) string {
	return c.Project("feature_flags/" + strconv.FormatInt(id, 10) + "/" + more)
}

// findFlag returns the flag with the key, and all of its fields.
func findFlag(ctx context.Context, c *remote.Client, key string) (found flag, whole map[string]any, err error) {
	flags, err := c.All(ctx, c.Project("feature_flags/"), url.Values{"search": {key}}, 0)
	if err != nil {
		return found, nil, err
	}
	for _, text := range flags {
		var f flag
		if err := json.Unmarshal(text, &f); err != nil {
			return found, nil, err
		}
		if f.Key == key {
			err = output.Decode(text, &whole)
			return f, whole, err
		}
	}
	return found, nil, command.NotFound("no flag has the key %q%s", key, similar(ctx, c, "feature_flags/", "key", key))
}

type flagListCmd struct {
	command.Remote `embed:""`
	Search         string `help:"Part of the key or the name."`
	Active         string `enum:"true,false,stale," default:"" help:"true, false or stale."`
	Tag            string `help:"A tag."`
	Limit          int    `default:"0" help:"The most flags to print; 0 for all."`
}

func (c flagListCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	query := url.Values{}
	if c.Search != "" {
		query.Set("search", c.Search)
	}
	if c.Active != "" {
		query.Set("active", strings.Replace(c.Active, "stale", "STALE", 1))
	}
	if c.Tag != "" {
		tags, err := json.Marshal([]string{c.Tag})
		if err != nil {
			return err
		}
		query.Set("tags", string(tags))
	}
	texts, err := client.All(context.Background(), client.Project("feature_flags/"), query, c.Limit)
	if err != nil {
		return err
	}
	all := make([]any, len(texts))
	rows := make([][]any, len(texts))
	for i, text := range texts {
		var f flag
		if err := json.Unmarshal(text, &f); err != nil {
			return err
		}
		if err := output.Decode(text, &all[i]); err != nil {
			return err
		}
		rows[i] = []any{f.Key, onOrOff(f.Active), f.Version, f.Status, strings.Join(f.Tags, ","), f.Updated, output.OneLine(f.Name, 60)}
	}
	return c.Print(e, all, "KEY STATE VERSION STATUS TAGS UPDATED NAME", rows)
}

func onOrOff(active bool) string {
	if active {
		return "on"
	}
	return "off"
}

type flagGetCmd struct {
	command.Remote `embed:""`
	FlagKey        string `arg:"" name:"flag" help:"Key of the flag."`
}

// Run prints the fields of the flag. The table is YAML, because filters are nested.
func (c flagGetCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	_, whole, err := findFlag(context.Background(), client, c.FlagKey)
	if err != nil {
		return err
	}
	return c.PrintOne(e, whole)
}

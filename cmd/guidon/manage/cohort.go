package manage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// CohortCommands are the commands on cohorts.
type CohortCommands struct {
	List    cohortListCmd    `cmd:"" help:"List cohorts, newest first."`
	Get     cohortGetCmd     `cmd:"" help:"Print a cohort."`
	Create  cohortCreateCmd  `cmd:"" help:"Make a cohort."`
	Edit    cohortEditCmd    `cmd:"" help:"Change a cohort by options, by a file or in an editor."`
	Delete  cohortDeleteCmd  `cmd:"" help:"Delete a cohort that no flag and no cohort uses."`
	Persons cohortPersonsCmd `cmd:"" help:"List the persons of a cohort."`
}

// cohortArg names a cohort.
type cohortArg struct {
	command.Remote `embed:""`
	Cohort         string `arg:"" help:"Name or id of the cohort."`
}

type cohortListCmd struct {
	command.Remote `embed:""`
	Search         string `help:"Part of the name."`
	Limit          int    `default:"0" help:"The most cohorts to print; 0 for all."`
}

func (c cohortListCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	texts, err := client.All(context.Background(), client.Project(cohorts.path), query("search", c.Search), c.Limit)
	if err != nil {
		return err
	}
	return command.List(c.Remote, e, texts, "ID NAME KIND PERSONS CREATED DESCRIPTION", func(o object) []any {
		kind := "dynamic"
		if o.Static {
			kind = "static"
		}
		return []any{o.ID, o.Name, kind, o.persons(), o.Created, output.OneLine(o.Description, 60)}
	})
}

// persons returns the count of a cohort as a table cell.
func (o object) persons() string {
	switch {
	case o.Count == nil:
		return "-"
	case o.Calculating:
		return fmt.Sprintf("at least %d", *o.Count)
	}
	return fmt.Sprint(*o.Count)
}

type cohortGetCmd struct{ cohortArg }

func (c cohortGetCmd) Run(e *command.Env) error { return cohorts.get(e, c.Remote, c.Cohort) }

type cohortFields struct {
	namedFields `embed:""`
	DistinctID  []string `name:"distinct-id" help:"A distinct id of a static cohort; repeat it for more." placeholder:"ID"`
	Property    []string `short:"p" help:"A property of the persons, NAME=VALUE; all that are given must be equal. A VALUE that is JSON is one." placeholder:"NAME=VALUE"`
}

func (f cohortFields) read(e *command.Env) (map[string]any, error) {
	fields, err := f.namedFields.read(e)
	if err != nil {
		return nil, err
	}
	filters, err := propertyFilters(f.Property, "person")
	if err != nil {
		return nil, err
	}
	if len(filters) > 0 {
		fields["filters"] = map[string]any{"properties": map[string]any{
			"type": "AND", "values": []any{map[string]any{"type": "AND", "values": filters}},
		}}
	}
	if f.DistinctID != nil {
		fields["distinct_ids"] = f.DistinctID
	}
	return fields, nil
}

type cohortCreateCmd struct {
	command.Remote `embed:""`
	cohortFields   `embed:""`
	Name           string `arg:"" help:"Name of the cohort."`
	DryRun         bool   `name:"dry-run" help:"Print what would be sent; change nothing."`
}

func (c cohortCreateCmd) Run(e *command.Env) error {
	fields, err := c.read(e)
	if err != nil {
		return err
	}
	fields["name"] = c.Name
	if c.DistinctID != nil {
		fields["is_static"] = true
	}
	return cohorts.create(e, c.Remote, c.DryRun, fields)
}

type cohortEditCmd struct {
	cohortArg
	cohortFields   `embed:""`
	command.Change `embed:""`
	Name           string `help:"New name."`
}

func (c cohortEditCmd) Run(e *command.Env) error {
	fields, err := c.read(e)
	if err != nil {
		return err
	}
	return cohorts.edit(e, c.change("change", c.Change), fields, c.Name)
}

type cohortDeleteCmd struct {
	cohortArg
	command.Change `embed:""`
}

func (c cohortDeleteCmd) Run(e *command.Env) error {
	return cohorts.remove(e, c.change("delete", c.Change))
}

func (a cohortArg) change(does string, flags command.Change) change {
	return change{a.Remote, flags, a.Cohort, does, func(_ context.Context, _ *remote.Client, o object, _ map[string]any) string {
		if o.Count != nil && *o.Count == 1 && !o.Calculating {
			return "it has 1 person"
		}
		return "it has " + o.persons() + " persons"
	}}
}

type cohortPersonsCmd struct {
	cohortArg
	Limit int `short:"n" default:"100" help:"The most persons to print."`
}

func (c cohortPersonsCmd) Run(e *command.Env) error {
	client, err := c.Connect(e)
	if err != nil {
		return err
	}
	ctx := context.Background()
	o, _, err := cohorts.find(ctx, client, c.Cohort)
	if err != nil {
		return err
	}
	p := e.StartProgress("reading the persons of the cohort")
	people, err := follow(ctx, client, cohorts.at(client, o.ID, "persons/"), url.Values{"limit": {"200"}}, c.Limit)
	p.Stop()
	if err != nil {
		return err
	}
	return command.List(c.Remote, e, people, personHeader, personRow)
}

// follow returns the results of a list from its next links, at most limit of them. It
// sends requests to the path only, with the query of the link.
func follow(ctx context.Context, c *remote.Client, path string, q url.Values, limit int) (all []json.RawMessage, err error) {
	for {
		var page struct {
			Results []json.RawMessage
			Next    *string
		}
		if err := c.Do(ctx, http.MethodGet, path+"?"+q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Results...)
		if len(all) >= limit {
			return all[:limit], nil
		}
		if page.Next == nil {
			return all, nil
		}
		next, err := url.Parse(*page.Next)
		if err != nil {
			return nil, fmt.Errorf("next link of %s: %w", path, err)
		}
		q = next.Query()
	}
}

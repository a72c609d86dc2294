package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
)

type migrateCmd struct {
	command.Change `embed:""`
	WhileServing   bool   `help:"Migrate a Postgres database under a running server; without it, a server on the data directory must be stopped first."`
	Status         bool   `help:"Print the steps of the schema; change nothing." xor:"what"`
	To             *int   `help:"Migrate up or down to this step. The data in tables of the steps that are taken back is lost." placeholder:"N" xor:"what"`
	Output         string `short:"o" enum:"table,json,yaml" default:"table" help:"Format of --status: table, json or yaml."`
}

func (c migrateCmd) Run(e *env, m *command.Env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx := context.Background()
	if !c.Status && !c.DryRun && c.To == nil {
		p := m.StartProgress("migrating the database")
		defer p.Stop()
		return app.Migrate(ctx, cfg, app.Migration{WhileServing: c.WhileServing}, e.out)
	}
	database, steps, err := app.SchemaSteps(ctx, cfg)
	if err != nil {
		return err
	}
	if c.Status {
		return c.print(e, steps)
	}
	if database == "" && !c.DryRun {
		return app.MigrateTo(ctx, cfg, *c.To, e.out)
	}
	up, down, err := c.plan(steps)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.printPlan(e, database, up, down)
	}
	if len(down) > 0 {
		question := fmt.Sprintf("take back %s of %s: the data in their tables is lost", command.Plural(len(down), "schema step"), database)
		if err := c.Ask(m, question); err != nil {
			return err
		}
	}
	p := m.StartProgress("migrating the database")
	defer p.Stop()
	return app.MigrateTo(ctx, cfg, *c.To, e.out)
}

// plan returns the steps to apply, and those to take back, highest first.
func (c migrateCmd) plan(steps []app.SchemaStep) (up, down []app.SchemaStep, err error) {
	target, known := 0, c.To == nil || *c.To == 0
	for _, s := range steps {
		if !s.Known {
			return nil, nil, fmt.Errorf("the database has schema step %d, which this binary does not know: run a newer guidon", s.Number)
		}
		known = known || c.To != nil && s.Number == *c.To
		target = s.Number
	}
	if c.To != nil {
		target = *c.To
	}
	if !known {
		return nil, nil, fmt.Errorf("--to: this binary has no schema step %d; its newest is %d", target, steps[len(steps)-1].Number)
	}
	for _, s := range steps {
		switch applied := !s.AppliedAt.IsZero(); {
		case applied && s.Number > target:
			down = append([]app.SchemaStep{s}, down...)
		case !applied && s.Number <= target:
			up = append(up, s)
		}
	}
	return up, down, nil
}

func (c migrateCmd) printPlan(e *env, database string, up, down []app.SchemaStep) error {
	if database == "" {
		_, err := fmt.Fprintf(e.out, "there is no database: guidon migrate would create it with %s\n", command.Plural(len(up), "schema step"))
		return err
	}
	rows := make([][]any, 0, len(up)+len(down))
	for _, s := range down {
		rows = append(rows, []any{"down", s.Number, s.Name})
	}
	for _, s := range up {
		rows = append(rows, []any{"up", s.Number, s.Name})
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(e.out, "%s: nothing to migrate\n", database)
		return err
	}
	return e.table("DIRECTION STEP NAME", rows)
}

// errNotNewest is the failure of --status for a schema that lacks steps.
var errNotNewest = errors.New("the schema of the database is not that of this binary: run guidon migrate")

// print prints the steps. It fails if the schema is not the one of this binary.
func (c migrateCmd) print(e *env, steps []app.SchemaStep) error {
	all := make([]any, len(steps))
	rows := make([][]any, len(steps))
	missing := false
	for i, s := range steps {
		state := "applied"
		switch {
		case s.AppliedAt.IsZero():
			state, missing = "missing", true
		case !s.Known:
			state, missing = "unknown to this binary", true
		}
		all[i] = map[string]any{"number": s.Number, "name": s.Name, "state": state, "applied_at": command.FormatTime(s.AppliedAt)}
		rows[i] = []any{s.Number, s.Name, state, command.FormatTime(s.AppliedAt)}
	}
	err := command.Remote{Output: c.Output}.Print(&command.Env{Out: e.out}, all, "STEP NAME STATE APPLIED", rows)
	if err == nil && missing {
		err = errNotNewest
	}
	return err
}

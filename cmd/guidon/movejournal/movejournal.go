// Package movejournal is the command guidon journal move.
package movejournal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app/requestlog"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/core/logmove"
)

// Command moves the journal of a stopped server into the log of journal.url.
type Command struct {
	To     string `help:"The log, instead of journal.url of the config." placeholder:"URL"`
	DryRun bool   `name:"dry-run" help:"Count the records to move; change nothing."`
	Output string `short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run moves the records and prints what was moved.
func (c Command) Run(e *command.Env) error {
	cfg, err := e.Config()
	if err != nil {
		return err
	}
	if c.To != "" {
		cfg.Journal.URL = c.To
		if err := cfg.Journal.Validate(); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := e.StartProgress("moving the journal")
	o := logmove.Options{DryRun: c.DryRun, Progress: func(r logmove.Report) { p.Report(r.Bytes, 0) }}
	r, err := requestlog.Move(ctx, cfg.Journal, cfg.Database, cfg.DataDir, zap.NewNop(), o)
	p.Stop()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("interrupted: the same command continues")
	}
	if err != nil {
		return err
	}
	return c.print(e, r)
}

func (c Command) print(e *command.Env, r logmove.Report) error {
	if c.Output == "json" {
		return json.NewEncoder(e.Out).Encode(r)
	}
	verb := "moved"
	if c.DryRun {
		verb = "would move"
	}
	_, err := fmt.Fprintf(e.Out, "%s %s of the journal, %s as %s of the log\n", verb, command.Plural(r.Records, "record"), output.Size(r.Bytes), command.Plural(r.Parts, "record"))
	if r.Lost > 0 {
		fmt.Fprintf(e.Out, "%s cannot be read and are left out: see \"The journal is damaged\" in docs/operators.md\n", command.Plural(r.Lost, "record"))
	}
	if err == nil && r.Left() == 0 && !c.DryRun {
		_, err = fmt.Fprintln(e.Out, "the log has all that readers of the journal had not done")
	}
	return err
}

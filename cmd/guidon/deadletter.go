package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

type deadletterCmd struct {
	List   deadletterListCmd   `cmd:"" help:"List dead letters, newest first."`
	Show   deadletterShowCmd   `cmd:"" help:"Print one dead letter, with its event."`
	Edit   deadletterEditCmd   `cmd:"" help:"Change fields of the event; a replay sends the changed event."`
	Replay deadletterReplayCmd `cmd:"" help:"Send dead letters again; --dry-run only lists them."`
	Delete deadletterDeleteCmd `cmd:"" help:"Delete dead letters; --dry-run only lists them."`
}

// withDeadLetters opens the dead letters, calls do and closes them.
func (e *env) withDeadLetters(do func(ctx context.Context, d *app.DeadLetters) error) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx := context.Background()
	d, err := app.OpenDeadLetters(ctx, cfg)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, d), d.Close())
}

// deadLetterFlags are the flags that filter dead letters.
type deadLetterFlags struct {
	Project    int64  `default:"1" help:"Id of the project."`
	Source     string `help:"Where the event failed: worker, or sink/NAME."`
	Sink       string `help:"Short for --source sink/NAME."`
	Event      string `help:"Name of the event."`
	DistinctID string `name:"distinct-id" help:"Distinct id of the event."`
	Code       string `help:"Code of the error."`
	Search     string `help:"Text in the event or the error; case is ignored."`
	After      string `help:"Failed at or after this time (2026-05-01T10:00:00Z), or at most this long ago (36h)."`
	Before     string `help:"Failed before this time, or more than this long ago."`
}

func (f deadLetterFlags) filter(ids []int64) (app.DeadLetterFilter, error) {
	out := app.DeadLetterFilter{
		IDs: ids, Source: f.Source, Event: f.Event, DistinctID: f.DistinctID, Code: f.Code, Search: f.Search,
	}
	if f.Sink != "" {
		out.Source = "sink/" + f.Sink
	}
	var err error
	if out.After, err = parseTime("--after", f.After); err == nil {
		out.Before, err = parseTime("--before", f.Before)
	}
	return out, err
}

// parseTime parses an RFC 3339 time, or a duration before now. "" is the zero time.
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("%s: %q is neither a time (2026-05-01T10:00:00Z) nor a duration (36h)", flag, text)
	}
	return at, nil
}

type deadletterListCmd struct {
	deadLetterFlags `embed:""`
	Limit           int `short:"n" default:"50" help:"Number of dead letters to list."`
}

func (c deadletterListCmd) Run(e *env) error {
	f, err := c.filter(nil)
	if err != nil {
		return err
	}
	return e.withDeadLetters(func(ctx context.Context, d *app.DeadLetters) error {
		page, count, err := d.List(ctx, c.Project, f, c.Limit, 0)
		if err != nil {
			return err
		}
		if err := e.deadLetterTable(page); err != nil || count <= len(page) {
			return err
		}
		_, err = fmt.Fprintf(e.out, "%d more\n", count-len(page))
		return err
	})
}

func (e *env) deadLetterTable(page []app.DeadLetter) error {
	rows := make([][]any, len(page))
	for i, l := range page {
		rows[i] = []any{l.ID, command.FormatTime(l.FailedAt), l.Source, output.OneLine(l.Event, 30), output.OneLine(l.DistinctID, 30), l.Code, output.OneLine(l.Message, 60)}
	}
	return e.table("ID FAILED SOURCE EVENT DISTINCT_ID CODE MESSAGE", rows)
}

type deadletterShowCmd struct {
	ID      int64 `arg:"" help:"Id of the dead letter."`
	Project int64 `default:"1" help:"Id of the project."`
}

func (c deadletterShowCmd) Run(e *env) error {
	return e.withDeadLetters(func(ctx context.Context, d *app.DeadLetters) error {
		l, err := d.Get(ctx, c.Project, c.ID)
		if err != nil {
			return err
		}
		return e.printJSON(l)
	})
}

// printJSON prints a value as indented JSON.
func (e *env) printJSON(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s\n", text)
	return err
}

type deadletterEditCmd struct {
	ID      int64  `arg:"" help:"Id of the dead letter."`
	Patch   string `arg:"" help:"JSON object with the fields to change, such as '{\"distinct_id\": \"ada\"}'; - reads the object from standard input."`
	Project int64  `default:"1" help:"Id of the project."`
}

func (c deadletterEditCmd) Run(e *env) error {
	patch := []byte(c.Patch)
	if c.Patch == "-" {
		var err error
		if patch, err = io.ReadAll(io.LimitReader(os.Stdin, 16<<20)); err != nil {
			return err
		}
	}
	return e.withDeadLetters(func(ctx context.Context, d *app.DeadLetters) error {
		l, err := d.Edit(ctx, c.Project, c.ID, patch)
		if err != nil {
			return err
		}
		return e.printJSON(l)
	})
}

type deadletterReplayCmd struct {
	IDs             []int64 `arg:"" optional:"" name:"id" help:"Ids of dead letters; without ids, all that match the filter flags."`
	deadLetterFlags `embed:""`
	All             bool          `help:"Replay everything; required without ids and filter flags."`
	DryRun          bool          `help:"Only list the dead letters that match."`
	Wait            time.Duration `default:"10s" help:"How long to wait for a running server to finish the replay."`
}

func (c deadletterReplayCmd) Run(e *env) error {
	f, err := c.filter(c.IDs)
	if err != nil {
		return err
	}
	if f.Everything() && !c.All && !c.DryRun {
		return errors.New("name ids, a filter, or --all")
	}
	return e.withDeadLetters(func(ctx context.Context, d *app.DeadLetters) error {
		out, err := d.Replay(ctx, c.Project, f, c.DryRun, c.Wait)
		if err != nil {
			return err
		}
		if c.DryRun {
			return e.printDryRun("replay", out.Matched, out.Sample)
		}
		fmt.Fprintf(e.out, "%d matched, %d replayed, %d failed again, %d waiting\n", out.Matched, out.Replayed, out.Failed, out.Waiting)
		for _, failed := range out.Failures {
			fmt.Fprintf(e.out, "%d: %s\n", failed.ID, output.OneLine(failed.Error, 200))
		}
		if out.Waiting > 0 {
			fmt.Fprintln(e.out, "A server that runs on this database replays the waiting dead letters, now or when it starts.")
		}
		return nil
	})
}

func (e *env) printDryRun(verb string, matched int, sample []app.DeadLetter) error {
	fmt.Fprintf(e.out, "would %s %d\n", verb, matched)
	if len(sample) == 0 {
		return nil
	}
	return e.deadLetterTable(sample)
}

type deadletterDeleteCmd struct {
	IDs             []int64 `arg:"" optional:"" name:"id" help:"Ids of dead letters; without ids, all that match the filter flags."`
	deadLetterFlags `embed:""`
	command.Change  `embed:""`
	All             bool `help:"Delete everything; required without ids and filter flags."`
}

// Run deletes dead letters after a question with their number.
func (c deadletterDeleteCmd) Run(e *env, m *command.Env) error {
	f, err := c.filter(c.IDs)
	if err != nil {
		return err
	}
	if f.Everything() && !c.All && !c.DryRun {
		return errors.New("name ids, a filter, or --all")
	}
	return e.withDeadLetters(func(ctx context.Context, d *app.DeadLetters) error {
		out, err := d.Delete(ctx, c.Project, f, true)
		if err != nil {
			return err
		}
		if c.DryRun {
			return e.printDryRun("delete", out.Matched, out.Sample)
		}
		if err := c.Ask(m, fmt.Sprintf("delete %s of project %d for good", command.Plural(out.Matched, "dead letter"), c.Project)); err != nil {
			return err
		}
		if out, err = d.Delete(ctx, c.Project, f, false); err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.out, "%d deleted\n", out.Deleted)
		return err
	})
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/guidonhq/guidon/app"
)

type deadletterVerb struct {
	List   deadletterListVerb   `cmd:"" help:"List dead letters, newest first."`
	Show   deadletterShowVerb   `cmd:"" help:"Print one dead letter, with its event."`
	Edit   deadletterEditVerb   `cmd:"" help:"Change fields of the event that would be sent again."`
	Replay deadletterReplayVerb `cmd:"" help:"Send dead letters again; --dry-run first shows which."`
	Delete deadletterDeleteVerb `cmd:"" help:"Throw dead letters away; --dry-run first shows which."`
}

// deadletters opens the dead letters for one verb.
func (e *env) deadletters(do func(ctx context.Context, d *app.DeadLetters) error) error {
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

// letterFilter is the flags that say which dead letters.
type letterFilter struct {
	Project    int64  `default:"1" help:"Id of the project."`
	Source     string `help:"Who could not take it: worker, or sink/NAME."`
	Sink       string `help:"Short for --source sink/NAME."`
	Event      string `help:"Name of the event."`
	DistinctID string `name:"distinct-id" help:"Who the event is of."`
	Code       string `help:"Code of the error."`
	Search     string `help:"Text in the event or the error, whatever the case."`
	After      string `help:"Failed at this time or later (2026-05-01T10:00:00Z), or at most so long ago (36h)."`
	Before     string `help:"Failed before this time, or longer ago than this."`
}

func (f letterFilter) filter(ids []int64) (app.DeadLetterFilter, error) {
	out := app.DeadLetterFilter{
		IDs: ids, Source: f.Source, Event: f.Event, DistinctID: f.DistinctID, Code: f.Code, Search: f.Search,
	}
	if f.Sink != "" {
		out.Source = "sink/" + f.Sink
	}
	var err error
	if out.After, err = moment("--after", f.After); err == nil {
		out.Before, err = moment("--before", f.Before)
	}
	return out, err
}

// moment reads a time, or how long ago it was.
func moment(flag, text string) (time.Time, error) {
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

type deadletterListVerb struct {
	letterFilter `embed:""`
	Limit        int `short:"n" default:"50" help:"How many."`
}

func (v deadletterListVerb) Run(e *env) error {
	f, err := v.filter(nil)
	if err != nil {
		return err
	}
	return e.deadletters(func(ctx context.Context, d *app.DeadLetters) error {
		letters, count, err := d.List(ctx, v.Project, f, v.Limit, 0)
		if err != nil {
			return err
		}
		if err := e.letterTable(letters); err != nil || count <= len(letters) {
			return err
		}
		_, err = fmt.Fprintf(e.out, "%d more\n", count-len(letters))
		return err
	})
}

func (e *env) letterTable(letters []app.DeadLetter) error {
	rows := make([][]any, len(letters))
	for i, l := range letters {
		rows[i] = []any{l.ID, day(l.FailedAt), l.Source, oneLine(l.Event, 30), oneLine(l.DistinctID, 30), l.Code, oneLine(l.Message, 60)}
	}
	return e.table("ID FAILED SOURCE EVENT DISTINCT_ID CODE MESSAGE", rows)
}

// oneLine makes a cell of a text: nothing in it moves the cursor of a terminal.
func oneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

type deadletterShowVerb struct {
	ID      int64 `arg:"" help:"Id of the dead letter."`
	Project int64 `default:"1" help:"Id of the project."`
}

func (v deadletterShowVerb) Run(e *env) error {
	return e.deadletters(func(ctx context.Context, d *app.DeadLetters) error {
		l, err := d.Get(ctx, v.Project, v.ID)
		if err != nil {
			return err
		}
		return e.indented(l)
	})
}

func (e *env) indented(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s\n", text)
	return err
}

type deadletterEditVerb struct {
	ID      int64  `arg:"" help:"Id of the dead letter."`
	Patch   string `arg:"" help:"JSON object with the fields to change, such as '{\"distinct_id\": \"ada\"}'; - reads it from standard input."`
	Project int64  `default:"1" help:"Id of the project."`
}

func (v deadletterEditVerb) Run(e *env) error {
	patch := []byte(v.Patch)
	if v.Patch == "-" {
		var err error
		if patch, err = io.ReadAll(io.LimitReader(os.Stdin, 16<<20)); err != nil {
			return err
		}
	}
	return e.deadletters(func(ctx context.Context, d *app.DeadLetters) error {
		l, err := d.Edit(ctx, v.Project, v.ID, patch)
		if err != nil {
			return err
		}
		return e.indented(l)
	})
}

type deadletterReplayVerb struct {
	IDs          []int64 `arg:"" optional:"" name:"id" help:"Ids; without any, those the flags let through."`
	letterFilter `embed:""`
	All          bool          `help:"Needed to replay everything, with neither ids nor a filter."`
	DryRun       bool          `help:"Only show which."`
	Wait         time.Duration `default:"10s" help:"How long to wait for a server to do it."`
}

func (v deadletterReplayVerb) Run(e *env) error {
	f, err := v.filter(v.IDs)
	if err != nil {
		return err
	}
	if f.Everything() && !v.All && !v.DryRun {
		return errors.New("name ids, a filter, or --all")
	}
	return e.deadletters(func(ctx context.Context, d *app.DeadLetters) error {
		out, err := d.Replay(ctx, v.Project, f, v.DryRun, v.Wait)
		if err != nil {
			return err
		}
		if v.DryRun {
			return e.wouldTouch("replay", out.Matched, out.Sample)
		}
		fmt.Fprintf(e.out, "%d matched, %d replayed, %d failed again, %d waiting\n", out.Matched, out.Replayed, out.Failed, out.Waiting)
		for _, failed := range out.Failures {
			fmt.Fprintf(e.out, "%d: %s\n", failed.ID, oneLine(failed.Error, 200))
		}
		if out.Waiting > 0 {
			fmt.Fprintln(e.out, "What waits is sent by a server that runs on this database, now or when one starts.")
		}
		return nil
	})
}

func (e *env) wouldTouch(what string, matched int, sample []app.DeadLetter) error {
	fmt.Fprintf(e.out, "would %s %d\n", what, matched)
	if len(sample) == 0 {
		return nil
	}
	return e.letterTable(sample)
}

type deadletterDeleteVerb struct {
	IDs          []int64 `arg:"" optional:"" name:"id" help:"Ids; without any, those the flags let through."`
	letterFilter `embed:""`
	All          bool `help:"Needed to delete everything, with neither ids nor a filter."`
	DryRun       bool `help:"Only show which."`
}

func (v deadletterDeleteVerb) Run(e *env) error {
	f, err := v.filter(v.IDs)
	if err != nil {
		return err
	}
	if f.Everything() && !v.All && !v.DryRun {
		return errors.New("name ids, a filter, or --all")
	}
	return e.deadletters(func(ctx context.Context, d *app.DeadLetters) error {
		out, err := d.Delete(ctx, v.Project, f, v.DryRun)
		if err != nil {
			return err
		}
		if v.DryRun {
			return e.wouldTouch("delete", out.Matched, out.Sample)
		}
		_, err = fmt.Fprintf(e.out, "%d deleted\n", out.Deleted)
		return err
	})
}

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
	"github.com/guidonhq/guidon/cmd/guidon/moveevents"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

type migrateDataCmd struct {
	From       string `help:"The source: sqlite for the file of the config or of the data directory, or sqlite:PATH. Default: sqlite; with --to clickhouse database.url." placeholder:"SOURCE"`
	To         string `required:"" help:"The target: postgres for database.url of the config, or postgres://…; clickhouse for events.url, or clickhouse://…, to which stored events are copied." placeholder:"TARGET"`
	DryRun     bool   `name:"dry-run" xor:"what" help:"Check both databases and print the rows to copy; change nothing."`
	Rate       int    `help:"With --to clickhouse: copy at most this many events a second." placeholder:"N"`
	Verify     bool   `xor:"what" help:"Compare the rows of both databases; change nothing."`
	Restart    bool   `xor:"what" help:"Delete what an unfinished copy has written, and begin again."`
	BrokenRows string `name:"broken-rows" help:"Write rows that cannot be copied to this file, as lines of JSON, and leave them out." placeholder:"FILE"`
	Output     string `short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run copies the database, or compares it with its copy.
func (c migrateDataCmd) Run(e *env, m *command.Env) (err error) {
	if moveevents.IsTarget(c.To) {
		if c.Restart || c.BrokenRows != "" {
			return errors.New("--to clickhouse has no --restart and no --broken-rows")
		}
		return moveevents.Run(m, moveevents.Options{From: c.From, To: c.To, DryRun: c.DryRun, Verify: c.Verify, Rate: c.Rate, JSON: c.Output == "json"})
	}
	if c.From == "" {
		c.From = "sqlite"
	}
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	show := &transferProgress{out: m.ErrOut, terminal: command.IsTerminal(m.ErrOut), begin: time.Now()}
	o := app.TransferOptions{DryRun: c.DryRun, Verify: c.Verify, Restart: c.Restart, Progress: show.report}
	if c.BrokenRows != "" {
		f, err := os.OpenFile(c.BrokenRows, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("--broken-rows: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		lines := json.NewEncoder(f)
		o.BrokenRows = func(r app.BrokenRow) error { return lines.Encode(r) }
	}
	r, err := app.Transfer(ctx, cfg, c.From, c.To, o)
	show.end()
	if r != nil && r.Tables != nil {
		err = errors.Join(c.print(e, r), err)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errors.New("interrupted: the same command continues")
	}
	return err
}

func (c migrateDataCmd) print(e *env, r *app.TransferReport) error {
	if c.Output == "json" {
		return e.printJSON(struct {
			*app.TransferReport
			Seconds float64 `json:"seconds"`
		}{r, r.Took.Seconds()})
	}
	var rows [][]any
	var total, replaced, skipped int64
	for i := range r.Tables {
		t := &r.Tables[i]
		total, replaced, skipped = total+t.Rows, replaced+t.Replaced, skipped+t.Skipped
		switch {
		case c.DryRun:
			rows = append(rows, []any{t.Name, t.Rows, t.TargetRows})
		case t.Rows == 0 && t.Equal():
		default:
			rows = append(rows, []any{t.Name, t.Rows, t.TargetRows, t.Checksum, map[bool]string{true: "equal", false: "DIFFERS"}[t.Equal()]})
		}
	}
	header := "TABLE SOURCE TARGET CHECKSUM RESULT"
	if c.DryRun {
		header = "TABLE ROWS COPIED"
	}
	if err := e.table(header, rows); err != nil {
		return err
	}
	c.printEnd(e.out, r, total)
	if replaced > 0 {
		fmt.Fprintf(e.out, "%s had NUL or invalid UTF-8, which is U+FFFD in the target\n", command.Plural(replaced, "text"))
	}
	if skipped > 0 {
		fmt.Fprintf(e.out, "%s that cannot be copied are left out\n", command.Plural(skipped, "row"))
	}
	return nil
}

func (c migrateDataCmd) printEnd(out io.Writer, r *app.TransferReport, total int64) {
	took := r.Took.Round(time.Millisecond)
	switch {
	case c.DryRun:
		fmt.Fprintf(out, "would copy %s from %s to %s\n", command.Plural(total, "row"), r.From, r.To)
	case r.Differing() != nil:
	case c.Verify:
		fmt.Fprintf(out, "%s of %s are in %s; compared in %s\n", command.Plural(total, "row"), r.From, r.To, took)
	case r.Complete:
		fmt.Fprintf(out, "nothing to do: %s has all %s of %s\n", r.To, command.Plural(total, "row"), r.From)
	default:
		fmt.Fprintf(out, "copied and compared %s, %s, from %s to %s in %s\n", command.Plural(total, "row"), output.Size(r.Bytes), r.From, r.To, took)
		fmt.Fprintln(out, "set database.url to the target and start the server with the same data directory")
	}
}

// transferProgress prints the progress: in one line of a terminal, else a line at
// intervals.
type transferProgress struct {
	out      io.Writer
	terminal bool
	begin    time.Time
	shown    time.Time
	lines    int
}

// Intervals of the progress.
const (
	terminalInterval = 200 * time.Millisecond
	lineInterval     = 10 * time.Second
)

func (p *transferProgress) report(now app.TransferProgress) {
	interval := lineInterval
	if p.terminal {
		interval = terminalInterval
	}
	if time.Since(p.shown) < interval {
		return
	}
	p.shown = time.Now()
	p.lines++
	text := transferText(now, time.Since(p.begin))
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(p.out, text)
}

func transferText(now app.TransferProgress, took time.Duration) string {
	text := now.Stage
	if now.Table != "" {
		text += fmt.Sprintf(" %s (table %d of %d)", now.Table, now.Tables, now.Of)
	}
	text += fmt.Sprintf(": %d of %d rows", now.Rows, now.AllOf)
	done := now.Rows - now.RowsResumed
	if done <= 0 || took <= 0 {
		return text
	}
	text += fmt.Sprintf(", %.0f rows/s", float64(done)/took.Seconds())
	if left := now.AllOf - now.Rows; left > 0 {
		text += ", " + (time.Duration(float64(took) / float64(done) * float64(left))).Round(time.Second).String() + " left"
	}
	return text
}

// end erases the line of a terminal.
func (p *transferProgress) end() {
	if p.terminal && p.lines > 0 {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// Package doctor checks the machine and the installation that a config names: clock,
// disk, limits, memory, ports, database, journal and plugins.
//
// A Check reads and reports; it changes nothing but a file of a few kilobytes that it
// writes to measure fsync and removes. Each result that is not ok has advice. Run runs the
// checks one after another, because some of them measure.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

// The states of a result.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)

// Result is the result of a check.
type Result struct {
	Check  string `json:"check"`
	State  string `json:"state"`
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"`
}

// check is one check. It may have several results.
type check struct {
	name string
	run  func(ctx context.Context, cfg app.Config) []Result
}

var checks = []check{
	{"clock", checkClock},
	{"disk space", checkSpace},
	{"fsync", checkFsync},
	{"open files", checkFiles},
	{"memory", checkMemory},
	{"ports", checkPorts},
	{"database", checkDatabase},
	{"journal", checkJournal},
	{"events", checkEvents},
	{"e-mail", checkEmail},
	{"plugins", checkPlugins},
}

func ok(format string, args ...any) Result {
	return Result{State: OK, Found: fmt.Sprintf(format, args...)}
}

func warn(advice, format string, args ...any) Result {
	return Result{State: Warn, Found: fmt.Sprintf(format, args...), Advice: advice}
}

func fail(advice, format string, args ...any) Result {
	return Result{State: Fail, Found: fmt.Sprintf(format, args...), Advice: advice}
}

// Command is the command.
type Command struct {
	Output string `short:"o" enum:"table,json,yaml" default:"table" help:"table, json or yaml."`
	Skip   bool   `name:"skip-integrity" help:"Leave out the checks that read the whole database and journal."`
}

// errFailed is the failure of the command if a check fails.
var errFailed = errors.New("at least one check failed")

// Run prints the results of all checks. It fails if a check fails; warnings do not.
func (c Command) Run(e *command.Env) error {
	cfg, err := e.Config()
	if err != nil {
		return err
	}
	ctx := context.WithValue(context.Background(), skipKey{}, c.Skip)
	var all []Result
	failed := false
	for _, check := range checks {
		p := e.StartProgress("checking " + check.name)
		results := check.run(ctx, cfg)
		p.Stop()
		for _, r := range results {
			r.Check = check.name
			failed = failed || r.State == Fail
			all = append(all, r)
		}
	}
	if err := c.print(e, all); err != nil {
		return err
	}
	if failed {
		return errFailed
	}
	return nil
}

// print prints a line for each result, and its advice below it.
func (c Command) print(e *command.Env, all []Result) error {
	if c.Output != output.Table {
		var v any
		text, err := json.Marshal(all)
		if err == nil {
			err = output.Decode(text, &v)
		}
		if err != nil {
			return err
		}
		return output.Value(e.Out, c.Output, v)
	}
	for _, r := range all {
		if _, err := fmt.Fprintf(e.Out, "%s%s  %-10s  %s\n", e.Colour(r.State, colours[r.State]), strings.Repeat(" ", 4-len(r.State)), r.Check, output.Clean(r.Found)); err != nil {
			return err
		}
		if r.Advice != "" {
			fmt.Fprintf(e.Out, "%18s%s\n", "", output.Clean(r.Advice))
		}
	}
	return nil
}

// bytesText returns a number of bytes in the largest unit.
func bytesText[N int64 | uint64](n N) string {
	text := fmt.Sprintf("%d B", n)
	for i, size := 0, float64(n)/1024; size >= 1; i, size = i+1, size/1024 {
		text = fmt.Sprintf("%.1f %ciB", size, "KMGTPE"[i])
	}
	return text
}

var colours = map[string]command.Colour{OK: command.Green, Warn: command.Yellow, Fail: command.Red}

// skipKey is the key of Command.Skip in a context.
type skipKey struct{}

func skipped(ctx context.Context) bool {
	skip, _ := ctx.Value(skipKey{}).(bool)
	return skip
}

// rounded returns a duration with at most two digits after the point.
func rounded(d time.Duration) time.Duration {
	for unit := time.Second; unit > 1; unit /= 10 {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}

package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

// instance is a plugin instance in the answer of GET /api/plugins.
type instance struct {
	Name, Kind, Use, State, Trouble string

	Since    time.Time
	Restarts int
	Delivery *sinkDelivery
}

// sinkDelivery is the state of the delivery to a sink.
type sinkDelivery struct {
	LagRecords  int64 `json:"lag_records"`
	DeadLetters int64 `json:"dead_letters"`
}

// pluginPath returns the path of an action on an instance, or on all of them.
func pluginPath(name, action string) string {
	path := "/api/plugins/"
	if name != "" {
		path += url.PathEscape(name) + "/"
	}
	return path + action
}

type pluginStatusCmd struct {
	serverFlags `embed:""`
	Name        string `arg:"" optional:"" help:"Name of the instance; without it, a table of all."`
}

func (c pluginStatusCmd) Run(e *env) error {
	if c.Name != "" {
		var one any
		if err := c.call(e, http.MethodGet, pluginPath(c.Name, ""), &one); err != nil {
			return err
		}
		return e.printJSON(one)
	}
	var page struct{ Results []instance }
	if err := c.call(e, http.MethodGet, pluginPath("", ""), &page); err != nil {
		return err
	}
	rows := make([][]any, len(page.Results))
	for i, p := range page.Results {
		lag, dead := "-", "-"
		if d := p.Delivery; d != nil {
			lag, dead = strconv.FormatInt(d.LagRecords, 10), strconv.FormatInt(d.DeadLetters, 10)
		}
		rows[i] = []any{p.Name, p.Kind, p.Use, p.State, time.Since(p.Since).Round(time.Second), p.Restarts, lag, dead, output.OneLine(p.Trouble, 120)}
	}
	return e.table("NAME KIND USE STATE FOR RESTARTS BEHIND DEAD_LETTERS TROUBLE", rows)
}

type pluginLogsCmd struct {
	serverFlags `embed:""`
	Name        string `arg:"" help:"Name of the instance."`
	Lines       int    `short:"n" default:"100" help:"Number of lines, at most 500."`
}

func (c pluginLogsCmd) Run(e *env) error {
	var page struct {
		Results []struct {
			At      time.Time
			Level   string
			Message string
		}
	}
	if err := c.call(e, http.MethodGet, pluginPath(c.Name, "logs?lines="+strconv.Itoa(c.Lines)), &page); err != nil {
		return err
	}
	for _, l := range page.Results {
		if _, err := fmt.Fprintln(e.out, l.At.Local().Format(time.DateTime), l.Level, output.OneLine(l.Message, 2000)); err != nil {
			return err
		}
	}
	return nil
}

type pluginCheckCmd struct {
	serverFlags `embed:""`
	pluginFile  `embed:""`
	Name        string `arg:"" optional:"" help:"Name of the instance; or use --file."`
	JSON        bool   `name:"json" help:"With --file: print JSON."`
}

// Run makes the plugin of an instance check its dependencies. With --file it runs the
// quick cases of the conformance kit, without a server. It fails if a check fails or
// cannot run.
func (c pluginCheckCmd) Run(e *env) error {
	switch {
	case c.File != "" && c.Name != "":
		return errors.New("an instance and --file exclude each other")
	case c.File != "":
		return checkFile(e, c.pluginFile, c.JSON)
	case c.Name == "":
		return errors.New("name an instance, or with --file the executable of a plugin")
	}
	var result struct {
		OK          bool `json:"ok"`
		Error, Code string
		LatencyMS   float64 `json:"latency_ms"`
	}
	if err := c.call(e, http.MethodPost, pluginPath(c.Name, "check"), &result); err != nil {
		return err
	}
	if !result.OK {
		return fmt.Errorf("%s: %s (%s)", c.Name, output.OneLine(result.Error, 500), result.Code)
	}
	_, err := fmt.Fprintf(e.out, "%s works, checked in %.0f ms\n", c.Name, result.LatencyMS)
	return err
}

// pluginActionCmd is embedded by the commands that post an action on an instance.
type pluginActionCmd struct {
	serverFlags `embed:""`
	Name        string `arg:"" help:"Name of the instance."`
}

func (c pluginActionCmd) post(e *env, action string) error {
	var after struct{ State string }
	if err := c.call(e, http.MethodPost, pluginPath(c.Name, action), &after); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.out, c.Name, after.State)
	return err
}

type (
	pluginRestartCmd struct{ pluginActionCmd }
	pluginReleaseCmd struct{ pluginActionCmd }
	pluginPauseCmd   struct {
		pluginActionCmd
		command.Change `embed:""`
	}
	pluginResumeCmd struct{ pluginActionCmd }
)

func (c pluginRestartCmd) Run(e *env) error { return c.post(e, "restart") }
func (c pluginReleaseCmd) Run(e *env) error { return c.post(e, "release") }
func (c pluginResumeCmd) Run(e *env) error  { return c.post(e, "resume") }

// Run pauses the instance after a question with what waits for it.
func (c pluginPauseCmd) Run(e *env, m *command.Env) error {
	var now instance
	if err := c.call(e, http.MethodGet, pluginPath(c.Name, ""), &now); err != nil {
		return err
	}
	what := fmt.Sprintf("pause %s %s, which is %s: its calls fail until it is resumed", now.Kind, c.Name, now.State)
	if d := now.Delivery; d != nil {
		what = fmt.Sprintf("pause sink %s, which is %s and %s behind: the journal keeps the events for it, within its retention", c.Name, now.State, command.Plural(d.LagRecords, "record"))
	}
	if ok, err := c.Proceed(m, what); !ok {
		return err
	}
	return c.post(e, "pause")
}

type pluginReloadCmd struct {
	serverFlags `embed:""`
	DryRun      bool `name:"dry-run" help:"Print what the server would do to each instance; change nothing."`
	JSON        bool `name:"json" help:"Print the answer of a dry run as JSON."`
}

// Run prints the answer of the server as JSON, or the plan of a dry run as a table. A
// dry run fails if settings of an instance are refused.
func (c pluginReloadCmd) Run(e *env) error {
	if c.DryRun {
		return c.printPlan(e)
	}
	var result any
	if err := c.call(e, http.MethodPost, pluginPath("", "reload"), &result); err != nil {
		return err
	}
	return e.printJSON(result)
}

// reloadPlan is the answer of a dry run.
type reloadPlan struct {
	Applied       []string `json:"applied"`
	RestartNeeded []string `json:"restart_needed"`
	DryRun        bool     `json:"dry_run"`
	Instances     []struct {
		Name     string   `json:"name"`
		Kind     string   `json:"kind"`
		Use      string   `json:"use"`
		Action   string   `json:"action"`
		Settings []string `json:"settings,omitempty"`
		Reason   string   `json:"reason,omitempty"`
	} `json:"instances"`
}

func (c pluginReloadCmd) printPlan(e *env) error {
	var plan reloadPlan
	if err := c.call(e, http.MethodPost, pluginPath("", "reload?dry_run=true"), &plan); err != nil {
		return err
	}
	if !plan.DryRun {
		return errors.New("this server has no dry run: it has applied the config")
	}
	var rows [][]any
	refused := 0
	for _, i := range plan.Instances {
		why := strings.Join(append(i.Settings, i.Reason), " ")
		rows = append(rows, []any{i.Name, i.Kind, i.Use, i.Action, output.OneLine(strings.TrimSpace(why), 300)})
		if i.Action == "refused" {
			refused++
		}
	}
	var err error
	if c.JSON {
		err = e.printJSON(plan)
	} else {
		err = errors.Join(e.table("NAME KIND USE ACTION WHY", rows), e.printSettings("changed settings that would apply", plan.Applied),
			e.printSettings("changed settings that need a restart of the server", plan.RestartNeeded))
	}
	if err == nil && refused > 0 {
		err = fmt.Errorf("%d of %d instances are refused", refused, len(plan.Instances))
	}
	return err
}

// printSettings prints the names of settings after a label; nothing for none.
func (e *env) printSettings(label string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(e.out, "%s: %s\n", label, strings.Join(names, ", "))
	return err
}

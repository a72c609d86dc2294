package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/startmemory"
	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"

	"github.com/guidonhq/guidon/cmd/guidon/output"
)

type pluginCmd struct {
	List     pluginListCmd     `cmd:"" help:"List the bundled plugins and, with a personal key, the instances of a running server with their trouble."`
	Status   pluginStatusCmd   `cmd:"" help:"Show the state of all instances of a running server, or the details of one."`
	Logs     pluginLogsCmd     `cmd:"" help:"Print the last log lines of an instance."`
	Check    pluginCheckCmd    `cmd:"" help:"Run the health check of an instance, including what it depends on; with --file quick checks of any executable."`
	Pause    pluginPauseCmd    `cmd:"" help:"Pause the delivery to a sink; its events wait in the journal."`
	Resume   pluginResumeCmd   `cmd:"" help:"Resume the delivery to a paused sink."`
	Restart  pluginRestartCmd  `cmd:"" help:"Restart the process of an instance; no event is lost."`
	Release  pluginReleaseCmd  `cmd:"" help:"Release an instance from quarantine."`
	Reload   pluginReloadCmd   `cmd:"" help:"Make the server read its config again and apply the plugins section and the settings that need no restart."`
	Describe pluginDescribeCmd `cmd:"" help:"Show what a plugin is: kinds, options, operators, version of the contract. Needs no server."`
	New      pluginNewCmd      `cmd:"" help:"Generate a working plugin to start from."`
	Test     pluginTestCmd     `cmd:"" help:"Test a plugin with the conformance kit, without a server; --config names the config of the plugin, a JSON file."`
	Run      pluginRunCmd      `cmd:"" help:"Run a plugin without a server: it receives the lines of standard input, one JSON object each: events, or for a matcher an operator, a value and a property; --config names the config of the plugin."`
	Exec     pluginExecCmd     `cmd:"" help:"Serve as a bundled plugin. For internal use: the server runs this command."`
}

type pluginListCmd struct {
	serverFlags `embed:""`
}

// Run prints the bundled plugins and, with a personal key, the instances of the running
// server with their trouble. Without a server the first list is complete.
func (c pluginListCmd) Run(e *env) error {
	var rows [][]any
	for _, name := range plugins.Names() {
		p, _ := plugins.Find(name)
		rows = append(rows, []any{name, p.Version, strings.Join(kindsOf(p), ","), p.Summary})
	}
	if err := e.table("NAME VERSION KINDS SUMMARY", rows); err != nil || c.Key == "" {
		return err
	}
	return c.printInstances(e)
}

func (c pluginListCmd) printInstances(e *env) error {
	var page struct{ Results []instance }
	if err := c.call(e, http.MethodGet, pluginPath("", ""), &page); err != nil {
		e.warn("instances not listed: %v", err)
		return nil
	}
	var rows [][]any
	for _, p := range page.Results {
		rows = append(rows, []any{p.Name, p.Kind, p.Use, p.State, output.OneLine(p.Trouble, 120)})
	}
	if _, err := fmt.Fprintln(e.out); err != nil {
		return err
	}
	return e.table("INSTANCE KIND USE STATE TROUBLE", rows)
}

// kindsOf returns the kinds that a plugin offers.
func kindsOf(p sdk.Plugin) []string {
	var kinds []string
	if p.Sink != nil {
		kinds = append(kinds, "sink")
	}
	if p.Notifier != nil {
		kinds = append(kinds, "notifier")
	}
	if p.Matcher != nil {
		kinds = append(kinds, "matcher")
	}
	return kinds
}

type pluginExecCmd struct {
	Name string `arg:"" help:"Name of the plugin, from plugin list."`
}

func (c pluginExecCmd) Run() error {
	p, ok := plugins.Find(c.Name)
	if !ok {
		return fmt.Errorf("there is no bundled plugin %q; there are %q", c.Name, plugins.Names())
	}
	time.AfterFunc(startmemory.Delay, startmemory.Release)
	sdk.Serve(p)
	return nil
}

package main

import (
	"fmt"
	"strings"

	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"
)

type pluginVerb struct {
	List    pluginListVerb    `cmd:"" help:"List the plugins that come with this binary."`
	Status  pluginStatusVerb  `cmd:"" help:"How the instances of a running server are, or all about one."`
	Logs    pluginLogsVerb    `cmd:"" help:"The last lines an instance has logged."`
	Check   pluginCheckVerb   `cmd:"" help:"Have an instance try what it depends on."`
	Pause   pluginPauseVerb   `cmd:"" help:"Hold the delivery to a sink; its events wait in the journal."`
	Resume  pluginResumeVerb  `cmd:"" help:"Go on with it."`
	Restart pluginRestartVerb `cmd:"" help:"Start an instance anew; nothing is lost."`
	Release pluginReleaseVerb `cmd:"" help:"Let an instance out of quarantine."`
	Reload  pluginReloadVerb  `cmd:"" help:"Have the server read its config again and apply the plugins section."`
	New     pluginNewVerb     `cmd:"" help:"Write a plugin that works, to start from."`
	Test    pluginTestVerb    `cmd:"" help:"Judge a plugin by the conformance kit, without a server; --config names its config, a JSON file."`
	Run     pluginRunVerb     `cmd:"" help:"Drive a plugin by hand, without a server: events from standard input, one JSON object a line; --config names its config."`
	Exec    pluginExecVerb    `cmd:"" help:"Be a bundled plugin. The server runs this; it is of no use to people."`
}

type pluginListVerb struct{}

func (pluginListVerb) Run(e *env) error {
	var rows [][]any
	for _, name := range plugins.Names() {
		p, _ := plugins.Find(name)
		rows = append(rows, []any{name, p.Version, strings.Join(kindsOf(p), ","), p.Summary})
	}
	return e.table("NAME VERSION KINDS SUMMARY", rows)
}

// kindsOf tells what a plugin can be used for.
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

type pluginExecVerb struct {
	Name string `arg:"" help:"Name of the plugin, from plugin list."`
}

func (v pluginExecVerb) Run() error {
	p, ok := plugins.Find(v.Name)
	if !ok {
		return fmt.Errorf("there is no bundled plugin %q; there are %q", v.Name, plugins.Names())
	}
	sdk.Serve(p)
	return nil
}

package main

import (
	"fmt"

	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"
)

type pluginVerb struct {
	List pluginListVerb `cmd:"" help:"List the plugins that come with this binary."`
	Exec pluginExecVerb `cmd:"" help:"Be a bundled plugin. The server runs this; it is of no use to people."`
}

type pluginListVerb struct{}

func (pluginListVerb) Run(e *env) error {
	var rows [][]any
	for _, name := range plugins.Names() {
		p, _ := plugins.Find(name)
		rows = append(rows, []any{name, p.Version})
	}
	return e.table("NAME VERSION", rows)
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

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

type configCmd struct {
	Default configDefaultCmd `cmd:"" default:"1" help:"Print the default config with comments."`
	Check   configCheckCmd   `cmd:"" help:"Check the config file and the environment as a start does, without a server."`
	Show    configShowCmd    `cmd:"" help:"Print the settings that differ from the default, where each comes from, and whether a change needs a restart."`
}

type configDefaultCmd struct{}

func (configDefaultCmd) Run(e *env) error {
	_, err := io.WriteString(e.out, app.DefaultYAML)
	return err
}

type configCheckCmd struct{}

// Run fails with every wrong setting. Configs of plugins are checked by their server.
func (configCheckCmd) Run(e *env) error {
	if _, err := e.config(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.out, "%s is valid\n", e.source())
	return err
}

// source names what the config is read from.
func (e *env) source() string {
	if path := e.path(); path != "" {
		return path
	}
	return "the environment (there is no config file)"
}

type configShowCmd struct {
	All    bool   `help:"Print every setting."`
	Output string `short:"o" enum:"table,json,yaml" default:"table" help:"table, json or yaml."`
}

func (c configShowCmd) Run(e *env) error {
	settings, err := app.Settings(e.path(), os.Environ())
	if err != nil {
		return err
	}
	shown := []map[string]any{}
	var rows [][]any
	for _, s := range settings {
		if c.All || s.Changed {
			shown = append(shown, map[string]any{"key": s.Key, "value": s.Value, "from": s.From, "changed": s.Changed, "live": s.Live})
			change := "restart"
			if s.Live {
				change = "live"
			}
			rows = append(rows, []any{s.Key, output.OneLine(s.Value, 120), s.From, change})
		}
	}
	if c.Output != output.Table {
		return output.Value(e.out, c.Output, shown)
	}
	return output.Rows(e.out, []string{"SETTING", "VALUE", "FROM", "CHANGE"}, rows)
}

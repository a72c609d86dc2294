package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/sdk/plugintest"
	"github.com/guidonhq/guidon/sdk/plugintest/inspect"
)

// pluginFile selects an executable to start without a server.
type pluginFile struct {
	File string   `help:"Executable of a plugin, written in any language." placeholder:"FILE"`
	Kind string   `enum:"sink,notifier,matcher," default:"" help:"With --file: only this kind of a plugin that offers several: sink, notifier or matcher."`
	Env  []string `help:"With --file: environment of the plugin, KEY=value; the plugin gets no other variables." placeholder:"KEY=VALUE"`
}

// target returns the executable, or the bundled plugin of a name. --config names the
// config of the plugin here, a JSON file.
func (f pluginFile) target(e *env, name string) (inspect.Target, error) {
	t := inspect.Target{Command: bundled(name), Env: f.Env, Kind: f.Kind}
	switch {
	case f.File == "" && name == "":
		return t, errors.New("name a bundled plugin, or with --file the executable of a plugin")
	case f.File != "" && name != "":
		return t, errors.New("a name and --file exclude each other")
	case f.File == "" && t.Command == nil:
		return t, fmt.Errorf("no bundled plugin is named %q; --file %s describes a file", name, name)
	case f.File != "":
		path, err := filepath.Abs(f.File)
		if err != nil {
			return t, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return t, err
		}
		if !info.Mode().IsRegular() {
			return t, fmt.Errorf("%s is not a file that can be run", f.File)
		}
		t.Command = []string{path}
	}
	return t, e.readPluginConfig(&t.Config)
}

// describe starts a plugin, asks what it is and ends it.
func describe(ctx context.Context, t inspect.Target, dir string) (*inspect.Description, error) {
	d, err := inspect.Describe(ctx, t, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", filepath.Base(t.Command[0]), output.OneLine(err.Error(), 2000))
	}
	return d, nil
}

type pluginDescribeCmd struct {
	pluginFile `embed:""`
	Name       string `arg:"" optional:"" help:"Name of a bundled plugin; or use --file."`
	JSON       bool   `name:"json" help:"Print JSON, with the schemas."`
}

// Run prints what a plugin reports of itself. It needs no server and no config.
func (c pluginDescribeCmd) Run(e *env) error {
	t, err := c.target(e, c.Name)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	var d *inspect.Description
	err = withSocketDir(func(dir string) (err error) {
		d, err = describe(ctx, t, dir)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(d)
	}
	return printDescription(e, d)
}

// printDescription prints a description for people.
func printDescription(e *env, d *inspect.Description) error {
	w := &textWriter{out: e.out}
	w.line("%s %s (%s), contract %s", d.Name, d.Version, strings.Join(d.Kinds, ", "), d.Protocol)
	if d.Summary != "" {
		w.line("%s", d.Summary)
	}
	w.line("")
	w.line("built with %s; largest request %d bytes; several instances in a process: %s; two processes at once: %s",
		d.SDK, d.MaxMessageBytes, command.YesNo(d.MultiInstance), command.YesNo(!d.Exclusive))
	for _, text := range d.Deprecations {
		w.line("deprecated: %s", text)
	}
	for _, config := range d.Configs {
		w.line("")
		if len(config.Options) == 0 {
			w.line("The %s has no options.", config.Kind)
			continue
		}
		w.line("Options of the %s:", config.Kind)
		if w.err == nil {
			w.err = e.table("OPTION TYPE DEFAULT DESCRIPTION", optionRows(config.Options))
		}
	}
	if d.OperatorsMissing != "" {
		w.line("")
		w.line("The operators are not listed: %s. --config names a JSON file with a config.", d.OperatorsMissing)
	}
	if len(d.Operators) > 0 {
		w.line("")
		rows := make([][]any, len(d.Operators))
		for i, op := range d.Operators {
			rows[i] = []any{output.OneLine(op.ID, 100), output.OneLine(op.Label, 60), output.OneLine(op.Doc, 200)}
		}
		if w.err == nil {
			w.err = e.table("OPERATOR LABEL DESCRIPTION", rows)
		}
	}
	return w.err
}

func optionRows(options []inspect.Option) [][]any {
	rows := make([][]any, len(options))
	for i, o := range options {
		kind, value := o.Type, string(o.Default)
		if len(o.Enum) > 0 {
			kind = strings.Join(o.Enum, "|")
		}
		if o.Minimum != "" {
			kind += " >=" + o.Minimum.String()
		}
		if o.Maximum != "" {
			kind += " <=" + o.Maximum.String()
		}
		if o.Secret {
			kind += " (secret)"
		}
		if o.Required {
			value = "required"
		}
		rows[i] = []any{output.OneLine(o.Name, 100), output.OneLine(kind, 100), output.OneLine(value, 60), output.OneLine(o.Doc, 200)}
	}
	return rows
}

// textWriter writes lines until the first error. Control characters become spaces.
type textWriter struct {
	out io.Writer
	err error
}

func (w *textWriter) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintln(w.out, output.OneLine(fmt.Sprintf(format, args...), 4000))
	}
}

// The cases of the conformance kit that a quick check runs: those that need no
// destination. configCases need a config that works.
var (
	startCases  = []string{"handshake/"}
	quickCases  = []string{"common/says what it is", "common/refuses a key", "common/says the same", "process/logs", "process/has written", "process/leaves"}
	configCases = []string{"common/describes its config", "common/takes its config"}
)

// checkFile runs the quick cases of the conformance kit against an executable.
func checkFile(e *env, f pluginFile, asJSON bool) error {
	t, err := f.target(e, "")
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	var d *inspect.Description
	var reports []*plugintest.Report
	err = withSocketDir(func(dir string) (err error) {
		if d, err = describe(ctx, t, dir); err != nil {
			return err
		}
		for i, config := range d.Configs {
			report, err := quickCheck(ctx, e, t, dir, config, i == 0, asJSON)
			if err != nil {
				return err
			}
			reports = append(reports, report)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return printReports(e, d, reports, asJSON)
}

// quickCheck runs the quick cases for one kind of a plugin.
func quickCheck(ctx context.Context, e *env, t inspect.Target, dir string, c inspect.Config, first, quiet bool) (*plugintest.Report, error) {
	target := plugintest.Target{Command: t.Command, Env: t.Env, Kind: c.Kind, Config: t.Config, Only: slices.Clone(quickCases)}
	if first {
		target.Only = append(target.Only, startCases...)
	}
	if t.Config != nil || !slices.ContainsFunc(c.Options, func(o inspect.Option) bool { return o.Required && !strings.Contains(o.Name, ".") }) {
		target.Only = append(target.Only, configCases...)
	}
	w := &textWriter{out: e.out}
	if !quiet {
		target.Progress = func(one plugintest.Case) { w.line("%s", one.Line()) }
	}
	report, err := plugintest.Judge(ctx, target, dir)
	return report, errors.Join(err, w.err)
}

func printReports(e *env, d *inspect.Description, reports []*plugintest.Report, asJSON bool) error {
	failed := 0
	for _, r := range reports {
		failed += r.Failed
	}
	if asJSON {
		if err := e.printJSON(map[string]any{"plugin": d, "reports": reports}); err != nil {
			return err
		}
	} else {
		w := &textWriter{out: e.out}
		w.line("")
		for _, r := range reports {
			w.line("%s", r.Summary())
		}
		if failed == 0 {
			w.line("guidon plugin test runs all cases.")
		}
		if w.err != nil {
			return w.err
		}
	}
	if failed > 0 {
		return errors.New("the plugin violates the contract")
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/plugintest"
)

// candidate is a plugin that is run without a server.
type candidate struct {
	Binary string   `arg:"" help:"The plugin's executable, or the name of a bundled plugin."`
	Kind   string   `enum:"sink,notifier,matcher," default:"" help:"What to use it as, when it offers several kinds: sink, notifier or matcher."`
	Env    []string `help:"Environment of the plugin, KEY=value; it gets no other." placeholder:"KEY=VALUE"`
}

// target is what the conformance kit is given. --config names the config of the
// plugin here, not of the server.
func (c candidate) target(e *env) (plugintest.Target, error) {
	t := plugintest.Target{Command: bundled(c.Binary), Env: c.Env, Kind: c.Kind}
	if t.Command == nil {
		path, err := filepath.Abs(c.Binary)
		if err != nil {
			return t, err
		}
		if _, err := os.Stat(path); err != nil {
			return t, fmt.Errorf("%s is neither a bundled plugin nor a file: %w", c.Binary, err)
		}
		t.Command = []string{path}
	}
	if e.file == "" {
		return t, nil
	}
	text, err := os.ReadFile(e.file)
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(text, &t.Config); err != nil {
		return t, fmt.Errorf("%s is not a JSON object: %w", e.file, err)
	}
	return t, nil
}

type pluginTestVerb struct {
	candidate `embed:""`
	Observe   string   `help:"Shell command that prints every event at the sink's destination, one JSON object a line; with it the kit sees whether the sink tells the truth." placeholder:"COMMAND"`
	Messages  string   `help:"Shell command that prints how many messages have come to a notifier's destination." placeholder:"COMMAND"`
	Control   []string `help:"Text that must never stand in a message as it is, such as <!channel>; may be repeated." placeholder:"TEXT" sep:"none"`
	JSON      string   `name:"json" help:"File to write the report to, as JSON." placeholder:"FILE"`
}

// Run judges a plugin by the conformance kit. It fails when a case does.
func (v pluginTestVerb) Run(e *env) error {
	t, err := v.target(e)
	if err != nil {
		return err
	}
	t.Control = v.Control
	if v.Observe != "" {
		t.Received = func() ([]sdk.Event, error) { return observed(v.Observe) }
	}
	if v.Messages != "" {
		t.Messages = func() (n int, err error) {
			out, err := exec.Command("sh", "-c", v.Messages).Output()
			if err == nil {
				_, err = fmt.Sscan(string(out), &n)
			}
			return n, err
		}
	}
	var report *plugintest.Report
	err = sockets(func(dir string) (err error) {
		report, err = plugintest.Judge(context.Background(), t, dir)
		return err
	})
	if err != nil {
		return err
	}
	if err := report.Table(e.out); err != nil {
		return err
	}
	if v.JSON != "" {
		text, err := json.MarshalIndent(report, "", "  ")
		if err == nil {
			err = os.WriteFile(v.JSON, append(text, '\n'), 0o644)
		}
		if err != nil {
			return err
		}
	}
	if report.Failed > 0 {
		return errors.New("the plugin does not keep the contract")
	}
	return nil
}

// observed runs the command and reads the events it prints.
func observed(command string) ([]sdk.Event, error) {
	out, err := exec.Command("sh", "-c", command).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	var events []sdk.Event
	for line := range bytes.Lines(out) {
		if !bytes.HasSuffix(line, []byte("\n")) || len(bytes.TrimSpace(line)) == 0 {
			continue // one that is not finished is not there
		}
		var ev sdk.Event
		if err := json.Unmarshal(line, &ev); err != nil {
			return nil, fmt.Errorf("%s printed a line that is no event: %w", command, err)
		}
		events = append(events, ev)
	}
	return events, nil
}

// sockets makes a directory for the time of do.
func sockets(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "guidon-")
	if err != nil {
		return err
	}
	return errors.Join(do(dir), os.RemoveAll(dir))
}

type pluginRunVerb struct {
	candidate `embed:""`
}

// Run drives a plugin by hand, without a server: a sink is given the events of
// standard input.
func (v pluginRunVerb) Run(e *env) error {
	t, err := v.target(e)
	if err != nil {
		return err
	}
	return sockets(func(dir string) error { return plugintest.Drive(context.Background(), t, dir, os.Stdin, e.out) })
}

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
	"time"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/plugintest"
)

// candidate selects a plugin to run without a server.
type candidate struct {
	Binary string       `arg:"" optional:"" help:"The plugin's executable, or the name of a bundled plugin; not with --remote."`
	Kind   string       `enum:"sink,notifier,matcher," default:"" help:"Kind to use, for a plugin that offers several: sink, notifier or matcher."`
	Env    []string     `help:"Environment of the plugin, KEY=value; the plugin gets no other variables." placeholder:"KEY=VALUE"`
	Remote remotePlugin `embed:""`
}

// remotePlugin is how to reach a plugin that runs elsewhere.
type remotePlugin struct {
	Address    string `name:"remote" help:"Address of a plugin that runs elsewhere, instead of an executable; it needs --ca, --cert and --key." placeholder:"HOST:PORT"`
	CA         string `name:"ca" help:"PEM file with the authority of the remote plugin's certificate." placeholder:"FILE"`
	Cert       string `help:"PEM file with the certificate of a server that may call the remote plugin." placeholder:"FILE"`
	Key        string `help:"PEM file with the key of --cert." placeholder:"FILE"`
	ServerName string `help:"Name in the remote plugin's certificate; default: the host of --remote." placeholder:"NAME"`
}

// target returns the plugin as the conformance kit takes it. --config names the
// config of the plugin here, not of the server.
func (c candidate) target(e *env) (plugintest.Target, error) {
	t := plugintest.Target{Command: bundled(c.Binary), Env: c.Env, Kind: c.Kind, Remote: plugintest.Remote(c.Remote)}
	switch {
	case c.Binary == "" && c.Remote.Address == "":
		return t, errors.New("name an executable, a bundled plugin, or with --remote the address of a plugin")
	case c.Binary != "" && c.Remote.Address != "":
		return t, errors.New("an executable and --remote exclude each other")
	case t.Command == nil && c.Binary != "":
		path, err := filepath.Abs(c.Binary)
		if err != nil {
			return t, err
		}
		if _, err := os.Stat(path); err != nil {
			return t, fmt.Errorf("%s is neither a bundled plugin nor a file: %w", c.Binary, err)
		}
		t.Command = []string{path}
	}
	return t, e.readPluginConfig(&t.Config)
}

// readPluginConfig reads the config of a plugin, a JSON file that --config names, into
// config. Without --config it does nothing.
func (e *env) readPluginConfig(config *map[string]any) error {
	if e.file == "" {
		return nil
	}
	text, err := os.ReadFile(e.file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, config); err != nil {
		return fmt.Errorf("%s is not a JSON object: %w", e.file, err)
	}
	return nil
}

type pluginTestCmd struct {
	candidate `embed:""`
	Observe   string        `help:"Shell command that prints every event at the sink's destination, one JSON object a line; with it the kit checks that committed events have arrived." placeholder:"COMMAND"`
	Messages  string        `help:"Shell command that prints the number of messages at a notifier's destination." placeholder:"COMMAND"`
	Control   []string      `help:"Text that a message must never contain unescaped, such as <!channel>; may be repeated." placeholder:"TEXT" sep:"none"`
	Restart   string        `help:"Shell command that ends a remote plugin at once and starts it again; with it the kit checks that a restart loses nothing." placeholder:"COMMAND"`
	Timeout   time.Duration `help:"Limit of one case; default: 2m." placeholder:"DURATION"`
	Only      []string      `help:"Run only the cases whose group/name contains this text, such as 'sink/'; may be repeated." placeholder:"TEXT" sep:"none"`
	JSON      string        `name:"json" help:"File to write the report to, as JSON." placeholder:"FILE"`
}

// Run runs the conformance kit against a plugin. It fails if a case fails.
func (c pluginTestCmd) Run(e *env) error {
	t, err := c.target(e)
	if err != nil {
		return err
	}
	t.Control, t.Timeout, t.Only = c.Control, c.Timeout, c.Only
	var printed error
	t.Progress = func(one plugintest.Case) {
		if _, err := fmt.Fprintln(e.out, one.Line()); err != nil {
			printed = err
		}
	}
	if c.Restart != "" {
		t.Restart = func() error { return runShell(c.Restart) }
	}
	if c.Observe != "" {
		t.Received = func() ([]sdk.Event, error) { return readEvents(c.Observe) }
	}
	if c.Messages != "" {
		t.Messages = func() (n int, err error) {
			out, err := exec.Command("sh", "-c", c.Messages).Output()
			if err == nil {
				_, err = fmt.Sscan(string(out), &n)
			}
			return n, err
		}
	}
	var report *plugintest.Report
	err = withSocketDir(func(dir string) (err error) {
		report, err = plugintest.Judge(context.Background(), t, dir)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(e.out, "\n%s\n", report.Summary()); err != nil || printed != nil {
		return errors.Join(err, printed)
	}
	if c.JSON != "" {
		text, err := json.MarshalIndent(report, "", "  ")
		if err == nil {
			err = os.WriteFile(c.JSON, append(text, '\n'), 0o644)
		}
		if err != nil {
			return err
		}
	}
	if report.Failed > 0 {
		return errors.New("the plugin violates the contract")
	}
	return nil
}

// runShell runs a shell command. The error has what it wrote.
func runShell(command string) error {
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, bytes.TrimSpace(out))
	}
	return nil
}

// readEvents runs a shell command and parses the events it prints, one a line.
func readEvents(command string) ([]sdk.Event, error) {
	out, err := exec.Command("sh", "-c", command).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	var events []sdk.Event
	for line := range bytes.Lines(out) {
		if !bytes.HasSuffix(line, []byte("\n")) || len(bytes.TrimSpace(line)) == 0 {
			continue // the writer has not finished this line
		}
		var ev sdk.Event
		if err := json.Unmarshal(line, &ev); err != nil {
			return nil, fmt.Errorf("%s printed a line that is no event: %w", command, err)
		}
		events = append(events, ev)
	}
	return events, nil
}

// withSocketDir makes a temporary directory for sockets, calls do and removes it.
func withSocketDir(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "guidon-")
	if err != nil {
		return err
	}
	return errors.Join(do(dir), os.RemoveAll(dir))
}

type pluginRunCmd struct {
	candidate `embed:""`
}

// Run starts a plugin without a server and sends it the events of standard input.
func (c pluginRunCmd) Run(e *env) error {
	t, err := c.target(e)
	if err != nil {
		return err
	}
	return withSocketDir(func(dir string) error { return plugintest.Drive(context.Background(), t, dir, os.Stdin, e.out) })
}

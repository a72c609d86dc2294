// Package inspect describes the plugin in an executable: it starts the file as the
// conformance kit does, asks what it is, and ends it. It needs no server.
//
// Everything in a Description comes from the plugin and is not trusted: texts have
// bounded lengths, and a caller that prints them must escape control characters.
package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
)

// Target is the plugin to describe.
type Target struct {
	// Command is the command line. A single executable runs as a copy in an empty
	// directory, as on a server.
	Command []string
	// Env is the environment of the process, as KEY=value.
	Env []string
	// Kind is sink, notifier or matcher; "" describes each kind that the plugin offers.
	Kind string
	// Config is the config with which a matcher is opened to list its operators, with
	// secrets in plain; nil is an empty one.
	Config map[string]any
}

// Description is what a plugin reports of itself.
type Description struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Summary string `json:"summary,omitempty"`
	// SDK is the library that it was built with.
	SDK string `json:"sdk,omitempty"`
	// Protocol is the version of the contract that it speaks, major.minor.
	Protocol string   `json:"protocol"`
	Kinds    []string `json:"kinds"`
	// Features are the optional parts of the contract that it offers.
	Features []string `json:"features"`
	// MaxMessageBytes is the largest request that it takes.
	MaxMessageBytes uint64 `json:"max_message_bytes"`
	// MultiInstance reports whether one process serves several instances, Exclusive
	// whether two processes must not serve one instance at once.
	MultiInstance bool     `json:"multi_instance"`
	Exclusive     bool     `json:"exclusive"`
	Deprecations  []string `json:"deprecations,omitempty"`
	// Configs has the config of each kind.
	Configs []Config `json:"configs"`
	// Operators are those of a matcher.
	Operators []Operator `json:"operators,omitempty"`
	// OperatorsMissing is why a matcher listed no operators; "" if it did.
	OperatorsMissing string `json:"operators_missing,omitempty"`
}

// Config describes the config of one kind.
type Config struct {
	Kind string `json:"kind"`
	// Options are the options of the schema, flattened.
	Options []Option `json:"options"`
	// Secrets are JSON Pointers of the options that hold a secret.
	Secrets []string `json:"secrets,omitempty"`
	// Schema is the JSON Schema, Defaults a config with every default filled in.
	Schema   json.RawMessage `json:"schema"`
	Defaults json.RawMessage `json:"defaults,omitempty"`
}

// Operator is an operator of a matcher.
type Operator struct {
	ID            string          `json:"id"`
	Label         string          `json:"label,omitempty"`
	Doc           string          `json:"doc,omitempty"`
	ValueSchema   json.RawMessage `json:"value_schema,omitempty"`
	PropertyTypes []string        `json:"property_types,omitempty"`
	// Missing is the result for an absent property: fails, no_match or matches.
	Missing string `json:"missing"`
	// Purity is what a result depends on: volatile, pure, time or data.
	Purity string `json:"purity"`
}

// ErrNoPlugin is wrapped by the error of Describe for a file that is no plugin, or none
// that this version understands.
var ErrNoPlugin = errors.New("not a Guidon plugin")

// Limits of what a plugin may report.
const (
	callLimit = 15 * time.Second
	endLimit  = 10 * time.Second
	maxSchema = 1 << 20
	maxText   = 2000
	maxItems  = 1000
)

// Describe starts the plugin, asks what it is and ends it, with every process that it
// has started. dir is a directory for sockets, whose path must be short; nothing is left
// in it. An error wraps ErrNoPlugin if the file is no plugin.
func Describe(ctx context.Context, t Target, dir string) (*Description, error) {
	args, remove, err := candidate.Copied(t.Command, dir)
	if err != nil {
		return nil, err
	}
	defer remove()
	command := candidate.Command{Args: args, Env: t.Env, Dir: dir}
	defer endAll(command)
	p, err := command.Start(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNoPlugin, startProblem(err))
	}
	defer p.Kill()
	a := &inspector{process: p, target: t, ctx: ctx}
	d, err := a.describe()
	if err != nil {
		return nil, err
	}
	a.shutDown()
	return d, nil
}

// startProblem returns why an executable did not start, without the path of its copy.
func startProblem(err error) string {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return "it is neither a program for this machine nor a script that begins with #!"
	case errors.Is(err, syscall.ENOENT):
		return "it does not start: its interpreter or loader is missing"
	}
	return err.Error()
}

// endAll ends the processes that the command has started and that are left.
func endAll(c candidate.Command) {
	for end := time.Now().Add(endLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		left := c.Left()
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
	}
}

// shorten cuts a text of the plugin.
func shorten(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// shortenAll is shorten for a list.
func shortenAll(list []string) []string {
	out := make([]string, 0, min(len(list), maxItems))
	for _, s := range list[:min(len(list), maxItems)] {
		out = append(out, shorten(s))
	}
	return out
}

// kindNames are the kinds as configs name them.
var kindNames = map[pluginv1.Kind]string{
	pluginv1.Kind_KIND_SINK: "sink", pluginv1.Kind_KIND_NOTIFIER: "notifier", pluginv1.Kind_KIND_MATCHER: "matcher",
}

// Package command has what the commands of the command line share: their environment,
// the connection to a server or to the database of the config, confirmations, progress
// and output.
//
// Remote are the flags of commands that call the management API. Place are those of
// commands that also work on the database. A command that changes something prints how
// much that affects and asks for confirmation on a terminal; elsewhere it needs --yes
// (Change).
package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// Env is what a command runs with.
type Env struct {
	In  io.Reader
	Out io.Writer
	// ErrOut is for questions and warnings, which are no part of the output.
	ErrOut io.Writer
	// ConfigFile returns the path of the config file; "" for none.
	ConfigFile func() string
	// ConfigGiven means that the command line names the config file.
	ConfigGiven bool
	// Config reads the config.
	Config func() (app.Config, error)
	// Options are those of a server within this process.
	Options app.Options

	closers []func() error
}

// Defer makes Close call end.
func (e *Env) Defer(end func() error) { e.closers = append(e.closers, end) }

// Close ends what the command has opened, the newest first.
func (e *Env) Close() error {
	var errs []error
	for _, end := range slices.Backward(e.closers) {
		errs = append(errs, end())
	}
	e.closers = nil
	return errors.Join(errs...)
}

// Remote are the flags of commands that call the management API of a running
// server, or that of a server within this process on a database.
type Remote struct {
	Database `embed:""`
	Context  string `env:"GUIDON_CONTEXT" help:"Context to use; default: the current one." placeholder:"NAME"`
	Server   string `env:"GUIDON_SERVER" help:"URL of a server to use instead of a context; without both, http.address of the config." placeholder:"URL"`
	Project  int64  `env:"GUIDON_PROJECT" help:"Id of the project; default: that of the context, else 1." placeholder:"ID"`
	Key      string `env:"GUIDON_PERSONAL_KEY" help:"Personal key (phx_), instead of that of the context; prefer the environment to the command line." placeholder:"PHX"`
	Output   string `short:"o" enum:"table,json,yaml" default:"table" help:"table, json or yaml."`
}

// Connect returns a client for the server or the database that the flags name.
func (f Remote) Connect(e *Env) (*remote.Client, error) {
	if f.chosen() {
		return f.connect(e, f.Project)
	}
	c, err := f.context(e)
	if err != nil {
		return nil, err
	}
	if f.Key != "" {
		c.Key = f.Key
	}
	c.Project = cmp.Or(f.Project, c.Project, 1)
	return remote.NewClient(c)
}

func (f Remote) context(e *Env) (remote.Context, error) {
	if f.Server != "" && f.Context == "" {
		return remote.Context{URL: f.Server}, nil
	}
	contexts, err := ReadContexts()
	if err != nil {
		return remote.Context{}, err
	}
	if name := cmp.Or(f.Context, contexts.Current); name != "" {
		return contexts.Find(name)
	}
	cfg, broken, err := app.LoadHTTP(e.ConfigFile(), os.Environ())
	if err != nil {
		return remote.Context{}, fmt.Errorf("%w\n--server names a server without the config", err)
	}
	if broken != nil {
		fmt.Fprintf(e.ErrOut, "guidon: warning: %v\nthe command goes on with http.address %s\n", broken, cfg.Address)
	}
	base, socket, err := remote.LocalURL(cfg.Address, cfg.TLS.Enabled())
	if err == nil && socket != "" {
		err = errors.New("it is a Unix socket")
	}
	if err != nil {
		return remote.Context{}, fmt.Errorf("http.address: %w; --server names a server", err)
	}
	return remote.Context{URL: base}, nil
}

// ReadContexts reads the contexts of the user.
func ReadContexts() (*remote.Contexts, error) {
	path, err := remote.Path()
	if err != nil {
		return nil, err
	}
	return remote.ReadContexts(path)
}

// Print prints v as JSON or YAML, or the table of it.
func (f Remote) Print(e *Env, v any, header string, rows [][]any) error {
	if f.Output != output.Table {
		return output.Value(e.Out, f.Output, v)
	}
	return output.Rows(e.Out, strings.Fields(header), rows)
}

// PrintOne prints one object, as YAML instead of a table.
func (f Remote) PrintOne(e *Env, v any) error {
	if f.Output == output.JSON {
		return output.Value(e.Out, output.JSON, v)
	}
	return output.Value(e.Out, output.YAML, v)
}

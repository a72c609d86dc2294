// Package manage has the commands of the command line that call the management API of a
// running server, here or elsewhere: a struct per command, its flags as fields, and Run,
// which kong calls with an Env.
//
// A command that changes a flag prints how many persons the flag reaches and asks for
// confirmation on a terminal; elsewhere it needs --yes.
package manage

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

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
}

// remoteFlags are the flags of commands that call the management API of a running
// server.
type remoteFlags struct {
	Context string `env:"GUIDON_CONTEXT" help:"Context to use; default: the current one." placeholder:"NAME"`
	Server  string `env:"GUIDON_SERVER" help:"URL of a server to use instead of a context; without both, http.address of the config." placeholder:"URL"`
	Project int64  `env:"GUIDON_PROJECT" help:"Id of the project; default: that of the context, else 1." placeholder:"ID"`
	Key     string `env:"GUIDON_PERSONAL_KEY" help:"Personal key (phx_), instead of that of the context; prefer the environment to the command line." placeholder:"PHX"`
	Output  string `short:"o" enum:"table,json,yaml" default:"table" help:"table, json or yaml."`
}

// connect returns a client for the server that the flags name.
func (f remoteFlags) connect(e *Env) (*remote.Client, error) {
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

func (f remoteFlags) context(e *Env) (remote.Context, error) {
	if f.Server != "" && f.Context == "" {
		return remote.Context{URL: f.Server}, nil
	}
	contexts, err := readContexts()
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

func readContexts() (*remote.Contexts, error) {
	path, err := remote.Path()
	if err != nil {
		return nil, err
	}
	return remote.ReadContexts(path)
}

// print prints v as JSON or YAML, or the table of it.
func (f remoteFlags) print(e *Env, v any, header string, rows [][]any) error {
	if f.Output != output.Table {
		return output.Value(e.Out, f.Output, v)
	}
	return output.Rows(e.Out, strings.Fields(header), rows)
}

// confirm asks the question on a terminal. Without a terminal it fails, because a
// script confirms with --yes.
func (e *Env) confirm(question string) error {
	in, ok := e.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return fmt.Errorf("%s; confirm with --yes", question)
	}
	fmt.Fprintf(e.ErrOut, "%s. Go on? [y/N] ", question)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

// printOne prints one object. It has no table: YAML is for people, too.
func (f remoteFlags) printOne(e *Env, v any) error {
	if f.Output == output.JSON {
		return output.Value(e.Out, output.JSON, v)
	}
	return output.Value(e.Out, output.YAML, v)
}

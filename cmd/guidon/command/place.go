package command

import (
	"fmt"
	"os"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// Place are the flags of commands that work on the database of the config, or through
// the management API of a running server.
//
// --local, --data and --config choose the database. Otherwise --context, --server or the current
// context choose a server, and without one the command opens the database.
type Place struct {
	Context string `env:"GUIDON_CONTEXT" help:"Context to use; default: the current one." placeholder:"NAME"`
	Server  string `env:"GUIDON_SERVER" help:"URL of a server to use instead of a context; the key is in GUIDON_PERSONAL_KEY." placeholder:"URL"`

	Database `embed:""`
}

// Client returns a client of the server that the flags choose; nil if they choose the
// database of the config. A project of 0 is that of the context.
func (p Place) Client(e *Env, project int64) (*remote.Client, error) {
	if p.Data != "" {
		of := &Env{Config: e.Config}
		e.Config = func() (app.Config, error) { return p.config(of) }
	}
	if p.chosen() || e.ConfigGiven && p.Context == "" && p.Server == "" {
		return nil, nil
	}
	f := p.flags(project)
	if p.Context == "" && p.Server == "" {
		contexts, err := ReadContexts()
		if err != nil || contexts.Current == "" {
			return nil, err
		}
		if IsTerminal(e.ErrOut) {
			fmt.Fprintf(e.ErrOut, "context %s\n", contexts.Current)
		}
	}
	return f.Connect(e)
}

func (p Place) flags(project int64) Remote {
	f := Remote{Context: p.Context, Server: p.Server, Project: project}
	if p.Context == "" { // a context has a key of its own
		f.Key = os.Getenv("GUIDON_PERSONAL_KEY")
	}
	return f
}

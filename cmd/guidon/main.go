// Command guidon serves feature flags, actions and event ingestion, and has the
// commands for administration. `guidon --help` lists them.
//
// The binary contains the bundled plugins: the server starts each as a process
// of its own, `guidon plugin exec NAME`.
//
// One file holds one group of commands: a struct per command, its flags as
// fields, and Run. The commands on accounts and dead letters open the database;
// the commands on plugin instances call the admin address of a running server. Package
// manage has those that call its public address.
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	_ "time/tzdata" // project time zones work on machines without a zone database

	"github.com/alecthomas/kong"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/manage"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// version is set at link time.
var version = "dev"

// commands is the command line; kong fills it in.
type commands struct {
	ConfigFile string `name:"config" short:"c" help:"YAML file to read; default: $GUIDON_CONFIG, else guidon.yaml in the working directory if it exists." placeholder:"FILE"`

	Serve      serveCmd               `cmd:"" help:"Serve until interrupted."`
	Migrate    migrateCmd             `cmd:"" help:"Create the database or migrate it to the newest schema."`
	Config     configCmd              `cmd:"" help:"Print the default config with comments; check and show the config in use."`
	Project    projectCmd             `cmd:"" help:"Create, list and close projects."`
	User       userCmd                `cmd:"" help:"Create, list and revoke users."`
	Key        keyCmd                 `cmd:"" help:"Create, list, rotate and revoke project keys (phc_), secret keys (phs_) and personal keys (phx_)."`
	Login      manage.Login           `cmd:"" help:"Keep a server and a personal key as a context for the commands on flags."`
	Context    manage.ContextCommands `cmd:"" help:"List, choose and remove contexts."`
	Flag       flagCmd                `cmd:"" help:"List, make, change, explain and roll back flags of a running server."`
	Person     personCmd              `cmd:"" help:"List erasures of persons and apply them after a restore."`
	Events     eventsCmd              `cmd:"" help:"Print stored events."`
	Deadletter deadletterCmd          `cmd:"" help:"List, edit, replay and delete events that failed processing or delivery."`
	Clients    clientsCmd             `cmd:"" help:"Install and list versions of the browser library."`
	Journal    journalCmd             `cmd:"" help:"Check the journal for damage and repair it."`
	Check      checkCmd               `cmd:"" help:"Check the database and the journal for damage."`
	Backup     backupCmd              `cmd:"" help:"Write, list, check and restore backups of the database and the journal."`
	Restore    restoreCmd             `cmd:"" help:"Verify a backup and restore it. Stop the server first."`
	Plugin     pluginCmd              `cmd:"" help:"Write and test plugins; control the instances of a running server."`
	Version    versionCmd             `cmd:"" help:"Print the version."`
	Help       helpCmd                `cmd:"" help:"Print the help of a command."`

	ShowVersion kong.VersionFlag `name:"version" short:"v" help:"Print the version."`
}

// env is the environment of a command: its output and the --config flag.
type env struct {
	out    io.Writer
	errOut io.Writer // of warnings; nil writes none
	file   string
	loaded app.Config // the config of the command, once it is read
}

// config loads the config from the file at path and from the environment.
func (e *env) config() (app.Config, error) {
	var err error
	e.loaded, err = app.Load(e.path(), os.Environ())
	return e.loaded, err
}

// warn prints a warning, which is no part of the output.
func (e *env) warn(format string, args ...any) {
	if e.errOut != nil {
		fmt.Fprintf(e.errOut, "guidon: warning: "+format+"\n", args...)
	}
}

// path returns the config file: --config, else the one app.FindConfig finds. ""
// means that there is none.
func (e *env) path() string {
	if e.file != "" {
		return e.file
	}
	return app.FindConfig(os.Environ())
}

type versionCmd struct{}

func (versionCmd) Run(e *env) error {
	_, err := fmt.Fprintln(e.out, "guidon", version)
	return err
}

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"Command to print the help of, for example plugin new."`
}

// Run prints the help as --help does, which also ends the process.
func (c helpCmd) Run(k *kong.Kong) error {
	_, err := k.Parse(append(c.Command, "--help"))
	return err
}

func main() {
	var c commands
	k := kong.Parse(&c, kong.Name("guidon"), kong.Description("Feature flags, actions and event ingestion in one binary."), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}), kong.Vars{"version": "guidon " + version})
	e := &env{out: os.Stdout, errOut: os.Stderr, file: c.ConfigFile}
	m := &manage.Env{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr, ConfigFile: e.path}
	if err := k.Run(e, m); err != nil {
		fmt.Fprintln(os.Stderr, "guidon:", e.loaded.Redact(app.Explain(err)))
		os.Exit(exitCode(err))
	}
}

// The exit codes of commands. kong ends the process with 80 for a wrong command line.
const (
	exitFailed      = 1
	exitNotFound    = 3
	exitRefused     = 4
	exitUnreachable = 5
)

// exitCode returns the code for the error of a command.
func exitCode(err error) int {
	if _, ok := errors.AsType[*remote.UnreachableError](err); ok {
		return exitUnreachable
	}
	if refused, ok := errors.AsType[*remote.Error](err); ok {
		switch refused.Status {
		case http.StatusNotFound:
			return exitNotFound
		case http.StatusUnauthorized, http.StatusForbidden:
			return exitRefused
		}
	}
	return exitFailed
}

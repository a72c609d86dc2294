// Command guidon serves feature flags, actions and event ingestion, and has the
// commands for administration. `guidon --help` lists them.
//
// The binary contains the bundled plugins: the server starts each as a process
// of its own, `guidon plugin exec NAME`.
//
// One file holds one group of commands: a struct per command, its flags as
// fields, and Run. The commands on accounts and dead letters open the database;
// the commands on plugin instances call the admin address of a running server. Package
// manage has those that call its public address, accounts those on keys, users and
// projects.
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	_ "time/tzdata" // project time zones work on machines without a zone database

	"github.com/alecthomas/kong"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/accounts"
	"github.com/guidonhq/guidon/cmd/guidon/bench"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/doctor"
	"github.com/guidonhq/guidon/cmd/guidon/manage"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/projectdata"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
	"github.com/guidonhq/guidon/cmd/guidon/shell"
)

// version is set at link time.
var version = "dev"

// commands is the command line; kong fills it in.
type commands struct {
	ConfigFile string `name:"config" short:"c" help:"YAML file to read; default: $GUIDON_CONFIG, else guidon.yaml in the working directory if it exists." placeholder:"FILE"`

	Serve       serveCmd                 `cmd:"" help:"Serve until interrupted."`
	Migrate     migrateCmd               `cmd:"" help:"Create the database or migrate it to the newest schema."`
	MigrateData migrateDataCmd           `cmd:"" name:"migrate-data" help:"Copy the database of a stopped server from SQLite to Postgres, or its events to ClickHouse; continue an interrupted copy."`
	Config      configCmd                `cmd:"" help:"Print the default config with comments; check and show the config in use."`
	Project     accounts.ProjectCommands `cmd:"" help:"Create, list and close projects."`
	User        accounts.UserCommands    `cmd:"" help:"Create, list and revoke users."`
	Session     accounts.SessionCommands `cmd:"" help:"List and end sessions of browsers."`
	Key         accounts.KeyCommands     `cmd:"" help:"Create, list, rotate and revoke project keys (phc_), secret keys (phs_) and personal keys (phx_)."`
	Login       manage.Login             `cmd:"" help:"Keep a server and a personal key as a context for the commands on a running server."`
	Context     manage.ContextCommands   `cmd:"" help:"List, choose and remove contexts."`
	Flag        flagCmd                  `cmd:"" help:"List, make, change, explain and roll back flags."`
	Action      manage.ActionCommands    `cmd:"" help:"List, make, change, count and preview actions."`
	Cohort      manage.CohortCommands    `cmd:"" help:"List, make and change cohorts, and list their persons."`
	Person      personCmd                `cmd:"" help:"Find, show and erase persons; list erasures and apply them after a restore."`
	Event       manage.EventCommands     `cmd:"" aliases:"events" help:"Follow stored events; print the way of one event."`

	Organization accounts.OrganizationCommands `cmd:"" help:"Show organizations with their projects and members."`

	Doctor doctor.Command `cmd:"" help:"Check clock, disk, limits, memory, ports, database, journal and plugins, with advice."`
	Bench  bench.Command  `cmd:"" help:"Load a server with events or decisions; report latency, errors, CPU and memory, and fail above a budget."`

	Deadletter deadletterCmd      `cmd:"" help:"List, edit, replay and delete events that failed processing or delivery."`
	Audit      auditCmd           `cmd:"" help:"Verify, export and anchor the activity log: who changed what, when, from where."`
	Clients    clientsCmd         `cmd:"" help:"Install and list versions of the browser library."`
	Journal    journalCmd         `cmd:"" help:"Check the journal for damage and repair it."`
	Check      checkCmd           `cmd:"" help:"Check the database and the journal for damage."`
	Cluster    clusterCmd         `cmd:"" help:"Show the servers of a cluster."`
	Backup     backupCmd          `cmd:"" help:"Write, list, check and restore backups of the database and the journal."`
	Restore    restoreCmd         `cmd:"" help:"Verify a backup and restore it. Stop the server first."`
	Export     projectdata.Export `cmd:"" help:"Write the definitions, events and persons of a project to a directory."`
	Import     projectdata.Import `cmd:"" help:"Bring the directory of an export into a project."`
	Plugin     pluginCmd          `cmd:"" help:"Write and test plugins; control the instances of a running server."`
	Version    versionCmd         `cmd:"" help:"Print the version."`
	Help       helpCmd            `cmd:"" help:"Print the help of a command."`

	Completion shell.CompletionCommand `cmd:"" help:"Print a completion script for bash, zsh or fish."`
	Man        shell.ManCommand        `cmd:"" help:"Write man pages."`
	Complete   shell.CompleteCommand   `cmd:"" name:"__complete" hidden:"" help:"Print the candidates for the last word."`

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

// table prints rows in aligned columns. The words of header name the columns.
func (e *env) table(header string, rows [][]any) error {
	return output.Rows(e.out, strings.Fields(header), rows)
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
	k := kong.Must(&c, kong.Name("guidon"), kong.Description("Feature flags, actions and event ingestion in one binary."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}), kong.Vars{"version": "guidon " + version})
	parsed, err := k.Parse(os.Args[1:])
	if err != nil {
		refuse(k, err)
	}
	e := &env{out: os.Stdout, errOut: os.Stderr, file: c.ConfigFile}
	m := &command.Env{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr, ConfigFile: e.path, ConfigGiven: c.ConfigFile != "", Config: e.config, Options: options()}
	err = parsed.Run(e, m)
	if err = errors.Join(err, m.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "guidon:", e.loaded.Redact(app.Explain(err)))
		os.Exit(exitCode(err))
	}
}

// refuse ends the process with the error of a wrong command line. A command that lacks its
// verb gets the whole help, any other one a line of it.
func refuse(k *kong.Kong, err error) {
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok {
		switch verbMissing := strings.HasPrefix(err.Error(), "expected one of"); {
		case verbMissing || wrong.Context.Selected() != nil:
			_ = wrong.Context.PrintUsage(!verbMissing)
		case len(wrong.Context.Path) > 1:
			_ = wrong.Context.PrintUsage(true)
		default:
			fmt.Fprintln(os.Stderr, "guidon help lists the commands.")
		}
	}
	fmt.Fprintln(os.Stderr, "guidon:", err)
	os.Exit(exitUsage)
}

// The exit codes of commands.
const (
	exitFailed      = 1
	exitUnconfirmed = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitUnreachable = 5
	exitUsage       = 80
)

// exitCode returns the code for the error of a command.
func exitCode(err error) int {
	if _, ok := errors.AsType[*command.NotConfirmedError](err); ok {
		return exitUnconfirmed
	}
	if _, ok := errors.AsType[*remote.UnreachableError](err); ok {
		return exitUnreachable
	}
	if _, ok := errors.AsType[*kong.ParseError](err); ok { // of the help of a command
		return exitUsage
	}
	if app.IsNotFound(err) {
		return exitNotFound
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

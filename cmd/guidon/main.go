// Command guidon serves feature flags, actions and event ingestion, and holds
// the verbs an operator needs beside that. `guidon --help` lists them.
//
// The same binary is its bundled plugins: the server starts them as
// `guidon plugin exec NAME`, processes like any other plugin's.
package main

import (
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // project time zones work on machines without a zone database

	"github.com/alecthomas/kong"

	"github.com/guidonhq/guidon/app"
)

// version is set at link time.
var version = "dev"

type verbs struct {
	ConfigFile string `name:"config" short:"c" help:"YAML file to read; default: $GUIDON_CONFIG, else guidon.yaml in this directory when there is one." placeholder:"FILE"`

	Serve      serveVerb      `cmd:"" help:"Serve until interrupted."`
	Migrate    migrateVerb    `cmd:"" help:"Bring the database to the newest schema."`
	Config     configVerb     `cmd:"" help:"Print the whole default config, commented."`
	Project    projectVerb    `cmd:"" help:"Projects."`
	User       userVerb       `cmd:"" help:"People."`
	Key        keyVerb        `cmd:"" help:"Project keys (phc_) and personal keys (phx_)."`
	Events     eventsVerb     `cmd:"" help:"Stored events."`
	Deadletter deadletterVerb `cmd:"" help:"Events that could not be processed or delivered."`
	Plugin     pluginVerb     `cmd:"" help:"Plugins."`
	Version    versionVerb    `cmd:"" help:"Print the version."`
}

// env is what a verb works with.
type env struct {
	out  io.Writer
	file string
}

// config loads the config the verb was told to use.
func (e *env) config() (app.Config, error) {
	return app.Load(e.path(), os.Environ())
}

// path is the config file the verb was told to use, or found; "" is none.
func (e *env) path() string {
	if e.file != "" {
		return e.file
	}
	return app.FindConfig(os.Environ())
}

type versionVerb struct{}

func (versionVerb) Run(e *env) error {
	_, err := fmt.Fprintln(e.out, "guidon", version)
	return err
}

type configVerb struct{}

func (configVerb) Run(e *env) error {
	_, err := io.WriteString(e.out, app.DefaultYAML)
	return err
}

func main() {
	var v verbs
	k := kong.Parse(&v, kong.Name("guidon"), kong.Description("Feature flags, actions and event ingestion in one binary."), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}))
	if err := k.Run(&env{out: os.Stdout, file: v.ConfigFile}); err != nil {
		fmt.Fprintln(os.Stderr, "guidon:", err)
		os.Exit(1)
	}
}

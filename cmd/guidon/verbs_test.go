package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// databaseCommands has every command that opens the database, with arguments.
// None of them creates or migrates anything.
var databaseCommands = map[string][]string{
	"project create": {"new"},
	"project list":   nil,
	"project revoke": {"1"},
	"user create":    {"ada@example.com"},
	"user list":      nil,
	"user revoke":    {"1"},

	"user login-link": {"ada@example.com"},

	"user operator grant":  {"1"},
	"user operator revoke": {"1"},

	"key create":      {"--project", "1"},
	"key list":        {"--project", "1"},
	"key revoke":      {"--project", "1", "1"},
	"key rotate":      {"--project", "1"},
	"flag reencrypt":  nil,
	"person erasures": nil,
	"audit verify":    nil,
	"audit export":    nil,
	"audit head":      nil,
	"event tail":      nil,

	"organization show":    nil,
	"organization members": nil,

	"deadletter list":   nil,
	"deadletter show":   {"1"},
	"deadletter edit":   {"1", "{}"},
	"deadletter replay": {"--all"},
	"deadletter delete": {"--all"},
}

// fileCommands has the commands that check or repair the files of a data directory,
// whatever their schema. None of them creates anything.
var fileCommands = []string{"check", "journal check", "journal repair", "journal acknowledge"}

// otherCommands has the other commands: serve and migrate create and migrate the
// database, and the rest does not open it.
var otherCommands = []string{
	"serve", "migrate", "migrate-data", "journal move", "doctor", "cluster status", "bench", "completion", "man", "__complete", "config default", "config check", "config show", "version", "help", "login", "context list", "context use", "context remove",
	"session list", "session revoke", "user invite", "user invites", "user uninvite", "user role", "user remove",
	"flag list", "flag get", "flag create", "flag edit", "flag on", "flag off", "flag delete", "flag explain", "flag history", "flag rollback",
	"action list", "action get", "action create", "action edit", "action delete", "action count", "action people", "action preview",
	"cohort list", "cohort get", "cohort create", "cohort edit", "cohort delete", "cohort persons",
	"person find", "person show", "event trace",
	"project retention", "export", "import", "person erase", "clients install", "clients list", "backup create", "backup list", "backup check", "backup restore", "restore",
	"plugin new", "plugin test", "plugin run", "plugin exec", "plugin list", "plugin status", "plugin logs", "plugin check",
	"plugin pause", "plugin resume", "plugin restart", "plugin release", "plugin reload", "plugin describe",
}

// newKong returns a parser of the command line that does not end the process.
func newKong(t *testing.T) *kong.Kong {
	t.Helper()
	k, err := kong.New(&commands{}, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// commandPath returns the words of a command: plugin new.
func commandPath(leaf *kong.Node) (path string) {
	for n := leaf; n.Parent != nil; n = n.Parent {
		path = strings.TrimSpace(n.Name + " " + path)
	}
	return path
}

func TestEveryCommandIsInATable(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for name := range databaseCommands {
		known[name] = true
	}
	for _, name := range slices.Concat(fileCommands, otherCommands) {
		known[name] = true
	}
	for _, leaf := range newKong(t).Model.Leaves(false) {
		path := commandPath(leaf)
		if !known[path] {
			t.Errorf("command %q: add it to databaseCommands, or to otherCommands if it does not open the database", path)
		}
		delete(known, path)
	}
	for name := range known {
		t.Errorf("command %q does not exist", name)
	}
}

// Each command is in a row of the first table of docs/command-line.md.
func TestEveryCommandIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		group := ""
		for i, name := range strings.Split(cells[1], "`") {
			if i%2 == 0 {
				continue
			}
			documented[name], documented[group+" "+name] = true, true
			if first, _, ok := strings.Cut(name, " "); ok && group == "" {
				group = first
			}
		}
	}
	for _, leaf := range newKong(t).Model.Leaves(true) {
		if path := commandPath(leaf); !documented[path] {
			t.Errorf("docs/command-line.md has no row with guidon %s", path)
		}
	}
}

// runCommand runs a command in this process.
func runCommand(t *testing.T, config, name string) error {
	t.Helper()
	k := newKong(t)
	ctx, err := k.Parse(append(strings.Fields(name), databaseCommands[name]...))
	if err != nil {
		t.Fatalf("parse %q: %v", name, err)
	}
	e := &env{out: io.Discard, file: config}
	return ctx.Run(e, &command.Env{Out: io.Discard, ErrOut: io.Discard, ConfigFile: e.path, ConfigGiven: true, Config: e.config})
}

func configOf(t *testing.T, dataDir, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guidon.yaml")
	text := "data_dir: " + dataDir + "\ndatabase:\n  url: \"" + url + "\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommandsCreateNoDatabase(t *testing.T) {
	t.Parallel()
	for name := range databaseCommands {
		dir := filepath.Join(t.TempDir(), "data")
		err := runCommand(t, configOf(t, dir, ""), name)
		missing, ok := errors.AsType[*db.NoDatabaseError](err)
		if !ok || !strings.Contains(missing.Error(), filepath.Join(dir, "guidon.db")) {
			t.Errorf("%s: got %v, want an error that names the file", name, err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s made %s", name, dir)
		}
	}
	url := dbtest.EmptyPostgresURL(t)
	for name := range databaseCommands {
		dir := filepath.Join(t.TempDir(), "data")
		if err := runCommand(t, configOf(t, dir, url), name); !isA[*db.NoDatabaseError](err) {
			t.Errorf("%s on an empty Postgres database: %v", name, err)
		}
	}
	if current := schema(t, url); current != 0 {
		t.Errorf("a command made schema %d", current)
	}
}

func TestFileCommandsCreateNothing(t *testing.T) {
	t.Parallel()
	for _, name := range fileCommands {
		dir := filepath.Join(t.TempDir(), "data")
		if err := runCommand(t, configOf(t, dir, ""), name); err == nil {
			t.Errorf("%s: no error without a data directory", name)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s made %s", name, dir)
		}
	}
}

func isA[T error](err error) bool { _, ok := errors.AsType[T](err); return ok }

func TestCommandsDoNotMigrate(t *testing.T) {
	t.Parallel()
	dbtest.RunURL(t, func(t *testing.T, url string) {
		d, err := db.Open(t.Context(), db.Config{URL: url}, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Migrate(t.Context()), d.Revert(t.Context(), 1), d.Close()); err != nil {
			t.Fatal(err)
		}
		before := schema(t, url)
		for name := range databaseCommands {
			err := runCommand(t, configOf(t, t.TempDir(), url), name)
			if !isA[*db.OlderSchemaError](err) || !strings.Contains(err.Error(), "run guidon migrate") {
				t.Errorf("%s: got %v, want an error that says how to migrate", name, err)
			}
		}
		if after := schema(t, url); after != before {
			t.Errorf("a command migrated from schema %d to %d", before, after)
		}
	})
}

func schema(t *testing.T, url string) int {
	t.Helper()
	d, err := db.Open(context.Background(), db.Config{URL: url}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	current, _, err := d.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return current
}

// The version to install is an argument: --version prints the version of the server.
func TestClientsInstallTakesAVersion(t *testing.T) {
	t.Parallel()
	var c commands
	k, err := kong.New(&c, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Parse([]string{"clients", "install", "1.449.2"}); err != nil || c.Clients.Install.Version != "1.449.2" {
		t.Errorf("got version %q, %v", c.Clients.Install.Version, err)
	}
}

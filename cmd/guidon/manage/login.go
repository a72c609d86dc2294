package manage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

// Login is the command that keeps a context.
type Login struct {
	URL     string `arg:"" help:"Public address of the server."`
	Name    string `help:"Name of the context; default: the host of the URL." placeholder:"NAME"`
	Project int64  `help:"Id of the project; default: the first that the key can read." placeholder:"ID"`
	CA      string `name:"ca" help:"File with the authorities to trust for https, instead of the system's." type:"existingfile" placeholder:"FILE"`
	Invite  string `help:"Accept an invitation and keep the personal key that it makes." placeholder:"INVITATION"`
}

// Run reads a personal key from the standard input, checks it and keeps it in a
// context, which becomes the current one.
func (c Login) Run(e *command.Env) error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%q is not an http or https URL", c.URL)
	}
	context := remote.Context{Name: c.Name, URL: c.URL, Project: c.Project}
	if context.Name == "" {
		context.Name = u.Host
	}
	if c.CA != "" {
		if context.CA, err = filepath.Abs(c.CA); err != nil {
			return err
		}
	}
	contexts, err := command.ReadContexts()
	if err != nil {
		return err
	}
	if c.Invite != "" {
		err = accept(&context, c.Invite)
	} else {
		context.Key, err = readSecret(e, "Personal key (phx_): ")
	}
	if err != nil {
		return err
	}
	project, err := check(&context)
	if err != nil {
		return err
	}
	contexts.Set(context)
	if err := contexts.Write(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "logged in to %s as context %s, project %d (%s)\n", context.URL, context.Name, context.Project, output.Clean(project))
	return err
}

// accept accepts an invitation, which is the id and the token with a point between, and
// sets the key of the context.
func accept(c *remote.Context, invite string) error {
	id, token, ok := strings.Cut(invite, ".")
	if !ok {
		return errors.New("--invite: paste the invitation as guidon user invite has printed it")
	}
	c.Key = token // the path reads no key
	client, err := remote.NewClient(*c)
	if err != nil {
		return err
	}
	var made struct {
		Key string `json:"personal_api_key"`
	}
	err = client.Do(context.Background(), http.MethodPost, "/api/signup/"+url.PathEscape(id)+"/", map[string]any{"token": token}, &made)
	c.Key = made.Key
	return err
}

// check asks the server for the project of the context, or chooses the first one that
// the key can read. It returns the name of the project.
func check(c *remote.Context) (string, error) {
	client, err := remote.NewClient(*c)
	if err != nil {
		return "", err
	}
	var project struct {
		ID   int64
		Name string
	}
	if c.Project != 0 {
		err := client.Do(context.Background(), http.MethodGet, client.Project(""), nil, &project)
		return project.Name, err
	}
	var page struct {
		Results []struct {
			ID   int64
			Name string
		}
	}
	if err := client.Do(context.Background(), http.MethodGet, "/api/projects/", nil, &page); err != nil {
		return "", err
	}
	if len(page.Results) == 0 {
		return "", errors.New("the key can read no project")
	}
	c.Project = page.Results[0].ID
	return page.Results[0].Name, nil
}

// readSecret reads a line from the standard input, without an echo on a terminal.
func readSecret(e *command.Env, prompt string) (string, error) {
	var line string
	var err error
	if in, ok := e.In.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		fmt.Fprint(e.ErrOut, prompt)
		var text []byte
		text, err = term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(e.ErrOut)
		line = string(text)
	} else if line, err = bufio.NewReader(io.LimitReader(e.In, 4096)).ReadString('\n'); errors.Is(err, io.EOF) {
		err = nil
	}
	if line = strings.TrimSpace(line); err == nil && line == "" {
		err = errors.New("no key was given: write a personal key to the standard input")
	}
	return line, err
}

// ContextCommands are the commands on contexts.
type ContextCommands struct {
	List   contextListCmd   `cmd:"" help:"List the contexts; a star marks the current one."`
	Use    contextUseCmd    `cmd:"" help:"Make a context the current one."`
	Remove contextRemoveCmd `cmd:"" help:"Remove a context with its key."`
}

type contextListCmd struct{}

func (contextListCmd) Run(e *command.Env) error {
	contexts, err := command.ReadContexts()
	if err != nil {
		return err
	}
	var rows [][]any
	for _, c := range contexts.List {
		mark := ""
		if c.Name == contexts.Current {
			mark = "*"
		}
		rows = append(rows, []any{mark, c.Name, c.URL, c.Project})
	}
	return output.Rows(e.Out, []string{"", "NAME", "URL", "PROJECT"}, rows)
}

type contextUseCmd struct {
	Name string `arg:"" help:"Name of the context."`
}

func (c contextUseCmd) Run(e *command.Env) error {
	contexts, err := command.ReadContexts()
	if err != nil {
		return err
	}
	found, err := contexts.Find(c.Name)
	if err != nil {
		return err
	}
	contexts.Set(found)
	return contexts.Write()
}

type contextRemoveCmd struct {
	command.Change `embed:""`
	Name           string `arg:"" help:"Name of the context."`
}

func (c contextRemoveCmd) Run(e *command.Env) error {
	contexts, err := command.ReadContexts()
	if err != nil {
		return err
	}
	found, err := contexts.Find(c.Name)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("remove the context %s of %s with its key, which stays valid on the server", found.Name, found.URL)
	if ok, err := c.Proceed(e, what); !ok {
		return err
	}
	contexts.Remove(c.Name)
	return contexts.Write()
}

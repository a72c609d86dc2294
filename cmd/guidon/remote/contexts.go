// Package remote calls the management API of a running server for the command line.
//
// A Context names a server, a project and the personal key to use there. Contexts
// keeps them in a file of the user, which no other user can read: a login adds one,
// and the commands use the current one. Client sends the requests; what the server
// refuses is an *Error with the status, the code and the field of the answer.
package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Context is a server, with a project and a personal key there.
type Context struct {
	Name string `yaml:"name"`
	// URL is the public address of the server, http or https.
	URL string `yaml:"url"`
	// Project is the id of a project.
	Project int64 `yaml:"project"`
	// Key is a personal key (phx_).
	Key string `yaml:"key"`
	// CA is a file with the authorities to trust instead of the system's; "" for
	// those of the system.
	CA string `yaml:"ca,omitempty"`
}

// Contexts are the contexts of a user.
type Contexts struct {
	// Current is the name of the context that commands use; "" for none.
	Current string    `yaml:"current"`
	List    []Context `yaml:"contexts"`

	path string
}

// Path returns the file of contexts: $GUIDON_CONTEXTS, else guidon/contexts.yaml in
// the directory for configuration of the user.
func Path() (string, error) {
	if path := os.Getenv("GUIDON_CONTEXTS"); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no directory for the contexts: %w; set GUIDON_CONTEXTS to a file", err)
	}
	return filepath.Join(dir, "guidon", "contexts.yaml"), nil
}

// ReadContexts reads the contexts at the path. A file that does not exist has none.
func ReadContexts(path string) (*Contexts, error) {
	c := &Contexts{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = yaml.Unmarshal(text, c)
	}
	if err != nil {
		return nil, fmt.Errorf("read contexts %s: %w", path, err)
	}
	return c, nil
}

// Write replaces the file. Only the user can read it, because it holds keys.
func (c *Contexts) Write() error {
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(c.path), ".contexts-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Find returns the context with the name, or an error with the names there are.
func (c *Contexts) Find(name string) (Context, error) {
	if i := c.index(name); i >= 0 {
		return c.List[i], nil
	}
	names := make([]string, len(c.List))
	for i, context := range c.List {
		names[i] = context.Name
	}
	if len(names) == 0 {
		return Context{}, NotFound("no context %q: guidon login adds one", name)
	}
	return Context{}, NotFound("no context %q; there are: %s", name, strings.Join(names, ", "))
}

// Set adds the context, or replaces the one with its name, and makes it the current
// one.
func (c *Contexts) Set(context Context) {
	if i := c.index(context.Name); i >= 0 {
		c.List[i] = context
	} else {
		c.List = append(c.List, context)
	}
	c.Current = context.Name
}

// Remove removes the context with the name, if there is one. No context is current
// after the current one is removed.
func (c *Contexts) Remove(name string) {
	c.List = slices.DeleteFunc(c.List, func(context Context) bool { return context.Name == name })
	if c.Current == name {
		c.Current = ""
	}
}

func (c *Contexts) index(name string) int {
	return slices.IndexFunc(c.List, func(context Context) bool { return context.Name == name })
}

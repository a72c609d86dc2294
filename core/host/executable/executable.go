// Package executable finds the executable of a plugin: the server itself for a bundled
// plugin, the verified copy of a file for a third-party one.
//
// A missing, untrusted or unknown executable is a lifecycle.Failure, which becomes the
// state of the instance.
package executable

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/process"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/text"
)

// Finder finds the executables of plugins. Its methods are safe for concurrent use.
type Finder struct {
	// Copies are the verified copies of third-party executables.
	Copies *process.VerifiedCopies
	// Bundled returns the command line of a bundled plugin, or nil for an unknown name.
	Bundled func(name string) []string
	// Names are the names that Bundled knows, for messages.
	Names []string
}

// Command returns the command line of an instance with its executable verified, or the
// connection key of an attached process. dev accepts files without a checksum. The
// error is a *lifecycle.Failure.
func (e *Finder) Command(c settings.Instance, dev bool) ([]string, error) {
	return e.find(c, func() (string, error) { return e.verifiedCopy(c, dev) })
}

// Locate is Command without a copy: it checks the file and returns the path that its
// copy would have.
func (e *Finder) Locate(c settings.Instance, dev bool) ([]string, error) {
	return e.find(c, func() (string, error) { return e.Copies.Locate(c.Use, c.SHA256, dev && c.Unverified()) })
}

// find is Command. copied returns the path of the copy of a third-party executable.
func (e *Finder) find(c settings.Instance, copied func() (string, error)) ([]string, error) {
	if c.Attached() {
		return c.ConnectionKey(), nil
	}
	if c.External() {
		path, err := copied()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, &lifecycle.Failure{State: lifecycle.StateMisconfigured, Reason: "no_such_file", Message: fmt.Sprintf("there is no file %s", c.Use)}
		case errors.Is(err, process.ErrUntrusted):
			return nil, &lifecycle.Failure{State: lifecycle.StateUntrusted, Reason: "checksum", Message: err.Error()}
		case err != nil:
			return nil, &lifecycle.Failure{State: lifecycle.StateBackoff, Reason: "verify", Message: err.Error()}
		}
		return []string{path}, nil
	}
	argv := e.Bundled(c.Use)
	if len(argv) == 0 {
		return nil, &lifecycle.Failure{State: lifecycle.StateMisconfigured, Reason: "unknown_plugin", Message: e.unknownPlugin(c.Use)}
	}
	return argv, nil
}

// verifiedCopy returns the path of the copy of a third-party executable.
func (e *Finder) verifiedCopy(c settings.Instance, dev bool) (string, error) {
	if dev && c.Unverified() {
		return e.Copies.DevCopy(c.Use)
	}
	return e.Copies.Executable(c.Use, c.SHA256)
}

// unknownPlugin returns the message for an unknown name, with a suggestion.
func (e *Finder) unknownPlugin(name string) string {
	message := fmt.Sprintf("no bundled plugin is named %q", name)
	if best := text.Nearest(name, slices.Values(e.Names), 3); best != "" {
		return fmt.Sprintf("%s; did you mean %q?", message, best)
	}
	return message + "; write ./" + name + " for a file of that name"
}

// Package install puts versions of the browser library into a directory from
// which the server serves them.
//
// It asks npm for the package, so that the registry, the proxy and the credentials
// of the npm configuration apply and npm checks the integrity of the package.
// Without npm it downloads the package itself over HTTPS, from the registry of the
// npm configuration, and checks the SHA-512 that the registry states. Of the
// package it keeps the scripts below dist, package.json and the licence. A version
// appears under its final name when it is complete; no code of the package is run.
package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/guidonhq/guidon/core/clients/scripts"
)

// Installer installs versions. The zero value uses npm, or the registry of its
// configuration.
type Installer struct {
	// Log receives a line for each step; nil discards them.
	Log io.Writer
	// NPM is the path of npm; empty looks for it in PATH. "-" uses the registry.
	NPM string
	// Registry is used instead of that of the npm configuration.
	Registry Registry
}

// Install installs a version of the package, the newest for an empty one, below
// dir, and returns the full version. A version that is installed is kept. It fails
// if version is neither a full version nor a tag of the registry such as latest.
func (in Installer) Install(ctx context.Context, dir, version string) (string, error) {
	if version == "" {
		version = "latest"
	}
	if !isTag(version) && !scripts.IsVersion(version) {
		return "", fmt.Errorf("%q is not a version: name one such as 1.449.2, or latest", version)
	}
	if path := installedAt(dir, version); path != "" {
		in.logf("%s is installed in %s", version, path)
		return version, nil
	}
	if err := os.MkdirAll(filepath.Join(dir, scripts.Package), 0o755); err != nil {
		return "", fmt.Errorf("create the directory of client libraries: %w", err)
	}
	archive, full, err := in.fetch(ctx, version)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(archive)) }()
	return full, in.place(archive, dir, full)
}

// fetch stores the package in a temporary directory of its own.
func (in Installer) fetch(ctx context.Context, version string) (archive, full string, err error) {
	tmp, err := os.MkdirTemp("", "guidon-clients-")
	if err != nil {
		return "", "", fmt.Errorf("create a temporary directory: %w", err)
	}
	npm := in.NPM
	if npm == "" {
		npm, err = exec.LookPath("npm")
	}
	if err == nil && npm != "-" {
		in.logf("npm pack %s@%s", scripts.Package, version)
		archive, full, err = pack(ctx, npm, tmp, version)
	} else {
		in.logf("npm is not in PATH; downloading %s@%s from the registry", scripts.Package, version)
		archive, full, err = in.Registry.download(ctx, tmp, version)
	}
	if err == nil && !scripts.IsVersion(full) {
		err = fmt.Errorf("the registry names the version %q, which is none", full)
	}
	if err != nil {
		_ = os.RemoveAll(tmp)
		return "", "", err
	}
	return archive, full, nil
}

// place unpacks the archive beside its final place and moves it there.
func (in Installer) place(archive, dir, version string) error {
	if path := installedAt(dir, version); path != "" {
		in.logf("%s is installed in %s", version, path)
		return nil
	}
	parent := filepath.Join(dir, scripts.Package)
	tmp, err := os.MkdirTemp(parent, ".unpack-")
	if err != nil {
		return fmt.Errorf("create a directory for the library: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	files, size, err := unpack(archive, tmp)
	if err != nil {
		return fmt.Errorf("unpack %s %s: %w", scripts.Package, version, err)
	}
	if _, err := os.Stat(filepath.Join(tmp, "dist", scripts.Main)); err != nil {
		return fmt.Errorf("the package %s %s has no dist/%s: %w", scripts.Package, version, scripts.Main, err)
	}
	final := filepath.Join(parent, version)
	if err := errors.Join(os.Chmod(tmp, 0o755), os.Rename(tmp, final)); err != nil {
		return fmt.Errorf("move the library to its place: %w", err)
	}
	in.logf("%d files, %d bytes in %s", files, size, final)
	return nil
}

// installedAt returns the directory of an installed version, or "".
func installedAt(dir, version string) string {
	path := filepath.Join(dir, scripts.Package, version)
	if !scripts.IsVersion(version) {
		return ""
	}
	if _, err := os.Stat(filepath.Join(path, "dist", scripts.Main)); err != nil {
		return ""
	}
	return path
}

func (in Installer) logf(format string, args ...any) {
	if in.Log != nil {
		_, _ = fmt.Fprintf(in.Log, format+"\n", args...)
	}
}

// isTag reports whether text can be a tag of a registry: a word.
func isTag(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < 'a' || c > 'z' {
			return false
		}
	}
	return len(text) > 0 && len(text) <= 32
}

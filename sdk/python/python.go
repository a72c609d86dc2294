// Package python holds the Python package of plugins, so that the binary can write it
// beside a new plugin: what `guidon plugin new --lang python` makes needs no release.
package python

import "embed"

// Package is the Python package, ready for pip, with its examples.
//
//go:embed README.md pyproject.toml all:src/guidon_plugin examples
var Package embed.FS

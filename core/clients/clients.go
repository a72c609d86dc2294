// Package clients serves the paths that client libraries ask for beside events and
// flags.
//
// Pages with the HTML snippet load the browser library from the server: the main
// script array.js, and scripts for single features that the library loads when
// they are switched on. They come from a directory into which an operator has
// installed versions of the npm package posthog-js (packages scripts and install);
// nothing of them is part of Guidon. Without an installed version the main script
// is a short one that names the command in the console, so that pages work.
//
// Libraries also ask for products that Guidon does not have: surveys, product
// tours, recordings. They get the empty answer that they take without a retry and
// without an error in the console of a visitor. Every answer can be read by pages
// of any origin.
package clients

import (
	"path/filepath"
)

// Config is the section of client libraries in the configuration.
type Config struct {
	// Dir holds the installed versions of browser libraries. Empty means the
	// directory clients of the data directory.
	Dir string `koanf:"dir"`
}

// DefaultConfig keeps the libraries in the data directory.
func DefaultConfig() Config { return Config{} }

// Validate accepts every configuration: a directory that does not exist has no
// versions.
func (Config) Validate() error { return nil }

// Directory returns the directory of the installed versions.
func (c Config) Directory(dataDir string) string {
	if c.Dir != "" {
		return c.Dir
	}
	return filepath.Join(dataDir, "clients")
}

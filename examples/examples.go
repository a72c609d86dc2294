// Package examples holds plugins in languages without a package of their own.
// `guidon plugin new --lang` begins with them.
package examples

import "embed"

// Rust is a sink with tonic.
//
//go:embed rust/Cargo.toml rust/build.rs rust/src
var Rust embed.FS

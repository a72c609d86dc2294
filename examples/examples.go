// Package examples holds plugins in languages without a package of their own.
// `guidon plugin new --lang` begins with them.
package examples

import "embed"

// Rust has a sink, a notifier and a matcher with tonic, and the library that they share.
//
//go:embed rust/Cargo.toml rust/build.rs rust/rustfmt.toml rust/src rust/examples
var Rust embed.FS

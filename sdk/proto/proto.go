// Package proto holds the messages of the contract and those of go-plugin, for plugins
// in languages that have no package here.
package proto

import "embed"

// Files are the .proto files by their import path.
//
//go:embed guidon goplugin/*.proto
var Files embed.FS

// Package proto holds the messages of the contract and those of go-plugin and of the
// health service of gRPC, for plugins in languages that have no package here.
package proto

import "embed"

// Files are the .proto files by their import path.
//
//go:embed guidon goplugin/*.proto grpc
var Files embed.FS

// Package api holds the document of the HTTP API, one truth for people and
// clients. It is served at /openapi.yaml, and every end-to-end story is checked
// against it.
package api

import _ "embed"

// OpenAPI is openapi.yaml, OpenAPI 3.1.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Package api holds the OpenAPI document of the HTTP API. The server serves it at
// /openapi.yaml, and the tests check every answer of the end-to-end stories against
// it.
package api

import _ "embed"

// OpenAPI is the content of openapi.yaml, in OpenAPI 3.1.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Package e2e tests the built binary with unmodified client libraries. Its tests
// need the build tag e2e, because they install the clients from npm and the Go proxy
// first: run them with make e2e.
package e2e

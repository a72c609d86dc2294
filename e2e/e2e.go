// Package e2e judges the built binary with unmodified client libraries. Its
// tests stand behind the build tag e2e, because they install the clients from
// npm and the Go proxy first: run them with make e2e.
package e2e

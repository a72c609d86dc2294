// Package e2e tests the built binary with unmodified client libraries and with the
// real software behind the bundled sinks and notifiers. Its tests
// need the build tag e2e, because they install the clients from package registries
// first: run them with make e2e.
//
// Each directory of testdata has one client or the clients of one language, and a
// script install that fetches pinned versions. A script there uses the client as an
// application does: it reads a task as JSON and prints what the client returned. The
// Go tests start a server, run the scripts and compare. A client that cannot be
// installed fails its test.
//
// The tests of destinations capture events, kill the process of the plugin and the
// software that receives them with SIGKILL in the middle, and read with a tool of that
// software what has arrived.
package e2e

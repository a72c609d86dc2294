// Package sdk is the interface between Guidon and its plugins: events, the results a
// plugin returns, and Serve, which runs a value that implements Sink, Notifier or
// Matcher as a process that the host supervises.
//
// The API is stable: names are added, and deprecated with a date, but never changed
// or removed. The package imports nothing of the server.
package sdk

// The contract is written in proto/ and compiled into pb/, which is committed.
// The tools come through the Go module proxy; nothing else is needed.

//go:generate sh -c "cd proto && go run github.com/bufbuild/buf/cmd/buf@v1.70.0 lint && go run github.com/bufbuild/buf/cmd/buf@v1.70.0 generate"

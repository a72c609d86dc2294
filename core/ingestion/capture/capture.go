// Package capture takes events in: the endpoints that clients send to, up to the
// journal.
//
// A request becomes one journal record. Capture finds the project key in the
// body, checks that the body has one of the known shapes, and answers success
// after the record is on disk. Nothing else happens while the client waits: the
// items of the body are neither decoded nor looked up. An item that breaks a
// rule is dropped later, alone.
//
// Two limits protect the server. The memory budget bounds the bytes of requests
// on their way to the journal; beyond it a request is answered with 503. A quota
// bounds the events of a project in a period; beyond it the client gets success,
// so that it does not retry, and the events are dropped.
//
// A client that sends the header Guidon-Results gets a result for each item in
// the answer; the 2026 protocol has them always.
package capture

import "context"

// Appender is the journal as capture needs it. Append returns after fsync, or
// fails with Unavailable.
type Appender interface {
	Append(ctx context.Context, data []byte) (seq uint64, err error)
}

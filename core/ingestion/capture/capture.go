// Package capture takes events in: the endpoints that clients send to, up to the
// journal.
//
// A request becomes one record of the journal, or one of each partition of the log
// that its events belong to. Capture finds the project key in the
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

import (
	"context"

	"github.com/guidonhq/guidon/core/eventlog"
)

// Log is the log as capture needs it. eventlog.Log implements it.
type Log interface {
	Partitions() int
	// Append returns after all parts are durable, or fails with Unavailable. After an
	// error any of them may be stored.
	Append(ctx context.Context, parts []eventlog.Part) error
}

// Appender is the journal of one node. Append returns after fsync, or fails with
// Unavailable.
type Appender interface {
	Append(ctx context.Context, data []byte) (seq uint64, err error)
}

// single is a journal as a log with one partition.
type single struct{ journal Appender }

func (s single) Partitions() int { return 1 }

func (s single) Append(ctx context.Context, parts []eventlog.Part) error {
	for i := range parts {
		if _, err := s.journal.Append(ctx, parts[i].Data); err != nil {
			return err
		}
	}
	return nil
}

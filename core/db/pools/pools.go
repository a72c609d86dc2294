// Package pools says by a context which pool of connections a read uses.
//
// A server has several pools, so that one kind of work cannot occupy the
// connections of another. The kind follows the context from a request to the
// store: stores call db.DB.Read and need no variant for each kind.
//
//	kind        set by                       reads of
//	Internal    the zero kind                ingestion, keys, snapshots of flags
//	Management  core/web, for each route     the management API
//	            of the management API
//	Scan        core/db, with a place        searches, counts, exports
//	            of the limiter
//
// It also counts the requests of clients that are being answered, for which scans pause.
package pools

import (
	"context"
	"sync/atomic"
)

// Kind is the kind of work that a read belongs to.
type Kind uint8

// The kinds. Internal is that of a context without a kind.
const (
	Internal Kind = iota
	Management
	Scan
	Kinds int = iota
)

// String returns the name of the pool in metrics.
func (k Kind) String() string { return names[k] }

var names = [...]string{Internal: "read", Management: "management", Scan: "scan"}

type key struct{}

// With returns a context whose reads belong to k.
func With(ctx context.Context, k Kind) context.Context { return context.WithValue(ctx, key{}, k) }

// Of returns the kind of ctx.
func Of(ctx context.Context) Kind {
	k, _ := ctx.Value(key{}).(Kind)
	return k
}

// inFlight is the number of requests of clients that are being answered.
var inFlight atomic.Int64

// BeginRequest counts a request of a client, such as a capture or a decision, until
// EndRequest. Scans work less while there are any. It is safe for concurrent use.
func BeginRequest() { inFlight.Add(1) }

// EndRequest ends what BeginRequest began.
func EndRequest() { inFlight.Add(-1) }

// InFlight returns how many requests of clients are being answered.
func InFlight() int64 { return inFlight.Load() }

// Package cluster divides work among the nodes that share one Postgres database:
// partitions of a log, and background jobs that run on one node at a time.
//
// A node writes a row with a beat each second. Another node is dead when its beat
// did not change for some seconds of the monotonic clock of the node that looks, so
// no clocks of two machines are compared. A lease has a name, an owner and a token.
// A node takes leases that are free or of a dead node; each change of the owner
// increments the token, in one conditional statement.
//
// A node that cannot write its beat gives up all leases before others may take them.
// A node that was stopped for a while notices it by its own clock (Valid, Holds).
// That is not enough, because a process can be stopped between the check and the
// write: a write that must not happen twice has to check the token in its own
// transaction (Fence, or a cursor with the token).
//
// Alone is the implementation for one node. It owns everything, with the token 1,
// and does not use the database.
package cluster

import (
	"context"

	"github.com/guidonhq/guidon/core/fault"
)

// Jobs runs background jobs on one node at a time.
type Jobs interface {
	// Run runs job on one of the nodes that call Run with this name. It returns at
	// once. token is that of the lease and increases with each owner. ctx ends when
	// the lease is given up or lost; job returns then, and runs again on another
	// node. ctx carries the lease for Valid and Fence. A job that returns earlier
	// runs again after a pause, here or on another node. Each name is used once.
	Run(name string, job func(ctx context.Context, token int64))
}

// Shares divides the numbers 0 to n-1 of a group among the nodes that follow it.
type Shares interface {
	// Follow calls start for each number that this node gets, and returns at once.
	// token is that of the lease and increases with each owner. start returns the
	// function that ends the work, which is called once: when the number is given
	// up, or with a context that has ended, or ends during the call, when the lease
	// is lost and nothing can be committed. The number starts nowhere else before
	// stop returns, unless the lease is lost. Calls for different numbers run side
	// by side. All nodes use the same n.
	Follow(group string, n int, start func(number int, token int64) (stop func(ctx context.Context)))

	// Holds reports whether this node has the number with the token and wrote a beat
	// recently. It asks no database. Use it before an effect that has no fence, such
	// as a batch to a sink.
	Holds(group string, number int, token int64) bool

	// Withhold makes this node give up its numbers of a group, or a job (JobGroup), and
	// take none, because it cannot do the work now. It keeps them while no other node
	// takes the group: the cause may be the same for all. With false it takes numbers
	// again.
	Withhold(group string, on bool)

	// Announce tells the other nodes the names of a kind that this node has, instead of
	// those before.
	Announce(kind string, names []string)

	// Announced reports whether this node or another living one has announced a name.
	// It asks no database; what another node announces is known after two beats.
	Announced(kind, name string) bool
}

// Member is both.
type Member interface {
	Jobs
	Shares

	// Drain gives up everything and waits until the jobs and the stop functions have
	// returned, or ctx has ended; then other nodes take over. Nothing starts after it.
	Drain(ctx context.Context) error

	// Status returns the nodes of the cluster and what they do.
	Status(ctx context.Context) (Status, error)
}

// held is a lease in a context.
type held interface {
	valid() bool
	fence(ctx context.Context) error
}

type leaseKey struct{}

// ErrLost is the error of Fence for a lease that the node has no more.
var ErrLost = fault.New(fault.Conflict, "lease_lost", "Another node has taken this work over.")

// Valid reports whether the job of ctx still has its lease, as far as this node can
// know without the database. It is true for a context without a lease.
func Valid(ctx context.Context) bool {
	h, ok := ctx.Value(leaseKey{}).(held)
	return !ok || h.valid()
}

// Fence returns ErrLost if the job of ctx has lost its lease. Inside a transaction
// (db.DB.Tx) it also locks the lease until the end: no other node takes it over
// before the transaction has ended. Without a lease in ctx it returns nil.
func Fence(ctx context.Context) error {
	if h, ok := ctx.Value(leaseKey{}).(held); ok {
		return h.fence(ctx)
	}
	return nil
}

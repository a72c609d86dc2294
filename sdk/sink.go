package sdk

import (
	"context"
	"time"
)

// Sink stores events somewhere. The SDK makes one value for each configured
// instance and opens it once; after a lost session it closes the value, makes a
// new one and opens that. Write may be called from as many goroutines as
// SinkProperties.MaxInFlight; Open and Close never run beside a Write.
//
// A sink may also implement Configured, Validator, Checker and Flusher.
type Sink interface {
	// Open connects and returns the properties of the sink. A ConfigError stops
	// the instance until the operator changes its config; any other error is
	// tried again.
	Open(ctx context.Context, req OpenRequest) (SinkProperties, error)
	// Write stores a batch and returns the result. An error means that no record of
	// the batch is committed; it is the same as Rejected.
	// The class of the error decides whether the host sends the batch again.
	Write(ctx context.Context, b *Batch) (WriteResult, error)
	// Close releases what Open took. It is called once, also after an Open
	// that failed.
	Close(ctx context.Context) error
}

// Configured is implemented by a plugin that has a config. Config returns a
// pointer to a struct that holds the defaults; before Open the SDK decodes the
// operator's config into it, strictly, and it derives the JSON Schema from the
// struct's tags. See Schema for the tags.
type Configured interface {
	Config() any
}

// Validator checks what tags cannot express, after the config was decoded and
// before Open. It must not touch the network. Return a ConfigError, or several
// with errors.Join.
type Validator interface {
	Validate() error
}

// Checker tries the real thing without leaving a trace: "can I write there?".
// It is called on an open sink.
type Checker interface {
	Check(ctx context.Context) error
}

// Flusher is implemented by a sink that answers Staged. Flush makes safe every
// record up to req.UpTo, and returns how far it got.
type Flusher interface {
	Flush(ctx context.Context, req FlushRequest) (FlushResult, error)
}

// OpenRequest is the position at which delivery continues.
type OpenRequest struct {
	// Instance is the name the operator gave this instance.
	Instance string
	// CommittedThrough is the highest sequence number the host knows to be
	// safe; 0 when it knows of none. What follows it will be sent, perhaps
	// again.
	CommittedThrough uint64
}

// SinkProperties is how a sink wants to be fed and what it promises. Zero
// values are the weakest choice: one batch at a time, no promise.
type SinkProperties struct {
	// MaxInFlight is how many Write calls may run at once; 0 means 1.
	MaxInFlight int
	// MaxEvents and MaxBytes bound a batch; 0 leaves it to the host.
	MaxEvents, MaxBytes int
	// Linger is how long the host may wait to fill a batch; 0 leaves it to
	// the host.
	Linger time.Duration
	// Ordering is the order the sink needs.
	Ordering Ordering
	// Dedup is what makes a second delivery harmless.
	Dedup Dedup
	// Commit is the call that commits records: Write or Flush.
	Commit Commit
	// Durability is what "safe" means here.
	Durability Durability
	// MaxStagedEvents, MaxStagedBytes and MaxStagedAge bound what may wait for
	// a Flush, when Commit is CommitOnFlush.
	MaxStagedEvents, MaxStagedBytes int
	MaxStagedAge                    time.Duration
}

// Ordering is the order in which a sink needs its batches.
type Ordering uint8

// The orders.
const (
	OrderNone   Ordering = iota // any order
	OrderPerKey                 // in order for each distinct id
	OrderTotal                  // one batch after the other
)

// Dedup is what a sink recognizes in a second delivery.
type Dedup uint8

// The ways of recognising a duplicate.
const (
	DedupNone      Dedup = iota // nothing: a second delivery is stored twice
	DedupByBatchID              // the batch, by its ID
	DedupByEventID              // each event, by its UUID
)

// Commit is the call that commits records.
type Commit uint8

// The calls.
const (
	CommitImmediate Commit = iota // Write
	CommitOnFlush                 // Flush; Write answers Staged
)

// Durability is what a sink means by "safe".
type Durability uint8

// The durabilities, weakest first.
const (
	DurabilityMemory     Durability = iota // survives the plugin's exit, not the machine's
	DurabilityLocalDisk                    // on this machine's disk
	DurabilityReplicated                   // on more than one machine
)

// Outcome is what became of a batch. The zero value is never success: the host
// takes it as an unknown outcome and sends the batch again.
type Outcome uint8

// The outcomes.
const (
	OutcomeUnspecified Outcome = iota
	Committed                  // every record is safe
	Staged                     // every record is accepted, and safe after a Flush
	Partial                    // every record is safe but the listed ones
	Rejected                   // the sink vouches for no record
)

var outcomeNames = [...]string{"unspecified", "committed", "staged", "partial", "rejected"}

// String returns the outcome in lower case.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unknown"
}

// WriteResult is the answer to a batch. Use Batch.Committed, Batch.Partial,
// Batch.Staged or an error from Write rather than filling it by hand.
type WriteResult struct {
	Outcome Outcome
	// CommittedThrough is a watermark: every record up to this sequence number
	// that was answered with Committed, Partial or Staged, this batch
	// included, is safe. Committed and Partial imply it for their own batch.
	CommittedThrough uint64
	// Failures are the records that were not stored, when Outcome is Partial.
	Failures []Failure
	// Err is why, when Outcome is Rejected.
	Err *Error
	// StagedEvents and StagedBytes are what waits for a Flush.
	StagedEvents, StagedBytes uint64
	// Duplicates is how many records had been stored before.
	Duplicates uint32
}

// Failure is one record that was not stored.
type Failure struct {
	// Index is the record's place in Batch.Records.
	Index int
	// Err is why; its class decides between another try and a dead letter.
	Err *Error
}

// FlushReason is why the host requests a flush.
type FlushReason uint8

// The reasons.
const (
	FlushUnspecified FlushReason = iota
	FlushTimer                   // the oldest staged record is old enough
	FlushSize                    // enough is staged
	FlushDrain                   // the instance is being replaced
	FlushShutdown                // the server is stopping
	FlushManual                  // requested by an operator
)

// FlushRequest requests that a sink commit its staged records.
type FlushRequest struct {
	Reason FlushReason
	// UpTo is the highest sequence number that must be safe afterwards.
	UpTo uint64
}

// FlushResult is how far a flush got.
type FlushResult struct {
	// CommittedThrough is the watermark, as in WriteResult.
	CommittedThrough uint64
	// Failures are staged records that cannot be stored.
	Failures []FlushFailure
}

// FlushFailure is one staged record that cannot be stored.
type FlushFailure struct {
	// Seq is the record's sequence number.
	Seq uint64
	// Err is why.
	Err *Error
}

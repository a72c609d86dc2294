// Package logstate has what the shared logs have in common: the refusals of appends, the
// bounds of appends that wait, whether appends succeed, and the metrics.
package logstate

import (
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// The refusals, with the codes of the journal of one node, each with a retry delay.
var (
	ErrSaturated = fault.New(fault.Unavailable, "journal_saturated",
		"Too many requests are waiting to be stored.").After(time.Second)
	ErrClosing = fault.New(fault.Unavailable, "journal_closing",
		"The server is shutting down.").After(2 * time.Second)
	ErrFull = fault.New(fault.Unavailable, "journal_full",
		"The retention of the log would remove requests before they are processed.").After(10 * time.Second)
	ErrUnavailable = fault.New(fault.Unavailable, "journal_unavailable",
		"The request cannot be stored right now.").After(2 * time.Second)
	ErrUnreadable = fault.New(fault.Unavailable, "journal_unreadable",
		"The log cannot be read right now.").After(2 * time.Second)
)

// The mistakes of a caller.
var (
	ErrRecordTooLarge = fault.New(fault.TooLarge, "record_too_large", "The request is too large to be stored.")
	ErrNoPartition    = fault.Field("partition", "no_partition", "The log has no partition of this number.")
	ErrAhead          = fault.Field("seq", "cursor_ahead", "A cursor cannot be beyond the newest record.")
	ErrToken          = fault.New(fault.Conflict, "lease_lost", "Another lease has taken the partition over.")
)

package journal

import (
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal/format"
)

// The refusals, each with a retry delay.
var (
	errSaturated = fault.New(fault.Unavailable, "journal_saturated",
		"Too many requests are waiting to be stored.").After(time.Second)
	errClosing = fault.New(fault.Unavailable, "journal_closing",
		"The server is shutting down.").After(2 * time.Second)
	errFull = fault.New(fault.Unavailable, "journal_full",
		"There is no space left to store the request.").After(10 * time.Second)
	errUnavailable = fault.New(fault.Unavailable, "journal_unavailable",
		"The request cannot be stored right now.").After(2 * time.Second)
	errUnreadable = fault.New(fault.Unavailable, "journal_unreadable",
		"The journal cannot be read right now.").After(2 * time.Second)
)

// The mistakes of a caller.
var (
	errRecordTooLarge = fault.New(fault.TooLarge, "record_too_large", "The request is too large to be stored.")
	errNoReader       = fault.New(fault.NotFound, "reader_not_found", "No reader of this name is registered.")
	errBackwards      = fault.New(fault.Conflict, "cursor_backwards", "A cursor never moves backwards.")
	errAhead          = fault.Field("seq", "cursor_ahead", "A cursor cannot be beyond the newest record.")
	errReaderName     = fault.Field("reader", "reader_name", "A reader needs a name of at most 200 bytes.")
)

// writeFault returns the fault for a failed write.
func writeFault(err error) *fault.Error {
	if format.IsFull(err) {
		return errFull.Because(err)
	}
	return errUnavailable.Because(damagedFile(err))
}

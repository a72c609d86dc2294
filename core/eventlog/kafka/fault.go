package kafka

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/guidonhq/guidon/core/fault"
)

// The refusals, with the codes of the journal of one node, each with a retry delay.
var (
	errSaturated = fault.New(fault.Unavailable, "journal_saturated",
		"Too many requests are waiting to be stored.").After(time.Second)
	errClosing = fault.New(fault.Unavailable, "journal_closing",
		"The server is shutting down.").After(2 * time.Second)
	errFull = fault.New(fault.Unavailable, "journal_full",
		"The retention of the log would remove requests before they are processed.").After(10 * time.Second)
	errUnavailable = fault.New(fault.Unavailable, "journal_unavailable",
		"The request cannot be stored right now.").After(2 * time.Second)
	errUnreadable = fault.New(fault.Unavailable, "journal_unreadable",
		"The log cannot be read right now.").After(2 * time.Second)
)

// The mistakes of a caller.
var (
	errRecordTooLarge = fault.New(fault.TooLarge, "record_too_large", "The request is too large to be stored.")
	errNoPartition    = fault.Field("partition", "no_partition", "The log has no partition of this number.")
	errAhead          = fault.Field("seq", "cursor_ahead", "A cursor cannot be beyond the newest record.")
	errToken          = fault.New(fault.Conflict, "lease_lost", "Another lease has taken the partition over.")
)

// appendFault returns the fault for a record that the brokers did not store.
func appendFault(err error) *fault.Error {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return errRecordTooLarge.Because(err)
	case errors.Is(err, kgo.ErrMaxBuffered):
		return errSaturated.Because(err)
	case errors.Is(err, kgo.ErrClientClosed):
		return errClosing
	}
	return errUnavailable.Because(err)
}

// refusals are the errors of brokers that no second attempt changes.
var refusals = []error{
	kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState, kerr.ClusterAuthorizationFailed,
	kerr.TopicAuthorizationFailed, kerr.InvalidTopicException,
}

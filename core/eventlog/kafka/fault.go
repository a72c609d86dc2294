package kafka

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/guidonhq/guidon/core/eventlog/logstate"
	"github.com/guidonhq/guidon/core/fault"
)

// appendFault returns the fault for a record that the brokers did not store.
func appendFault(err error) *fault.Error {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return logstate.ErrRecordTooLarge.Because(err)
	case errors.Is(err, kgo.ErrMaxBuffered):
		return logstate.ErrSaturated.Because(err)
	case errors.Is(err, kgo.ErrClientClosed):
		return logstate.ErrClosing
	}
	return logstate.ErrUnavailable.Because(err)
}

// refusals are the errors of brokers that no second attempt changes.
var refusals = []error{
	kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState, kerr.ClusterAuthorizationFailed,
	kerr.TopicAuthorizationFailed, kerr.InvalidTopicException,
}

package host

import (
	"context"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// lateCalls is how many calls in a row may end at their deadline before the
// supervisor looks at the process.
const lateCalls = 3

// kinds are the kinds of instances as the contract numbers them.
var kinds = map[string]pluginv1.Kind{
	settings.KindSink: pluginv1.Kind_KIND_SINK, settings.KindNotifier: pluginv1.Kind_KIND_NOTIFIER, settings.KindMatcher: pluginv1.Kind_KIND_MATCHER,
}

// failed turns a call that did not come to an answer into what the caller must
// know, and has the supervisor look at the process when it is suspect. Either the
// plugin refused, for good or for now, or nobody knows what became of the call.
func (s *supervisor) failed(ctx context.Context, session *session, err error) (refused, unknown *sdk.Error) {
	message := session.scrub.clean(status.Convert(err).Message())
	switch status.Code(err) {
	case codes.Unavailable:
		s.suspect(session, "call failed: "+message)
		return nil, unavailable(message)
	case codes.DeadlineExceeded:
		if session.late.Add(1) >= lateCalls {
			s.suspect(session, "calls do not return")
		}
		return nil, unsure("deadline_exceeded", "the plugin did not answer in time")
	case codes.Canceled:
		if ctx.Err() == nil { // not by our caller: the connection is being closed
			s.suspect(session, "call was cancelled: "+message)
			return nil, unavailable(message)
		}
		return nil, unsure("cancelled", message)
	case codes.ResourceExhausted:
		return refusal(sdk.ClassPermanent, "message_too_large", message), nil
	case codes.Unimplemented:
		return refusal(sdk.ClassUnsupported, "unimplemented", message), nil
	case codes.InvalidArgument:
		s.log.Error("a plugin refused a message of ours", zap.String("error", message))
	default: // a panic in the plugin, or a status that no call of ours gives
	}
	return refusal(sdk.ClassInternal, "internal", message), nil
}

// heed acts on an error that concerns the instance rather than what it was asked.
func (s *supervisor) heed(session *session, err *sdk.Error) {
	switch err.Class {
	case sdk.ClassNotConnected:
		s.reopen(session, err)
	case sdk.ClassConfig:
		s.misconfigured(session, err)
	default: // the caller's to deal with
	}
}

// disbelieve counts an answer that breaks the contract; the outcome is unknown.
func (s *supervisor) disbelieve(b *breach) *sdk.Error {
	s.host.metrics.breaches.WithLabelValues(s.name, b.kind).Inc()
	s.breached(b)
	return unsure("contract_breach", b.Error())
}

// unavailable is the error of a call that could not be made.
func unavailable(message string) *sdk.Error { return unsure("plugin_unavailable", message) }

// unsure is the error of a call whose outcome nobody knows.
func unsure(code, message string) *sdk.Error { return refusal(sdk.ClassTransient, code, message) }

func refusal(class sdk.Class, code, message string) *sdk.Error {
	return &sdk.Error{Class: class, Code: code, Message: message, Source: sdk.SourcePlugin}
}

// failing is an answer that may be an error instead.
type failing interface{ GetError() *pluginv1.Error }

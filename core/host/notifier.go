package host

import (
	"context"
	"slices"
	"sync"

	"github.com/guidonhq/guidon/core/host/conn"
	"github.com/guidonhq/guidon/core/host/metrics"
	"github.com/guidonhq/guidon/core/host/wire"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
)

// NotifierInstance is a configured notifier. It exists before its process and stays
// while processes come and go. Its methods are safe for concurrent use.
type NotifierInstance struct {
	*instance

	mu         sync.Mutex
	properties sdk.NotifierProperties
}

var _ kindHandler = (*NotifierInstance)(nil)

func newNotifierInstance(i *instance) *NotifierInstance {
	return &NotifierInstance{instance: i, properties: wire.NotifierPropertiesFromProto(nil)}
}

// Properties returns the properties that the notifier reported when it was last
// opened, within the limits of the host, and the weakest ones before that.
func (i *NotifierInstance) Properties() sdk.NotifierProperties {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.properties
	p.Formats = slices.Clone(p.Formats)
	return p
}

// Notify sends notifications to the plugin and returns a result for each, in the same
// order: Delivered, Duplicate, Retry with a reason or Dropped with a reason. More than
// Properties().MaxItems are sent in consecutive calls.
//
// After an error, always a *sdk.Error, the outcome is unknown, or, when its class is
// not Transient, the plugin processed none: send them again with the same IDs, after
// Ready.
func (i *NotifierInstance) Notify(ctx context.Context, items []*sdk.Notification) ([]sdk.NotifyResult, error) {
	results := make([]sdk.NotifyResult, 0, len(items))
	for chunk := range slices.Chunk(items, i.Properties().MaxItems) {
		part, err := i.notifyChunk(ctx, chunk)
		if err != nil {
			if len(results) == 0 {
				return nil, err
			}
			for len(results) < len(items) {
				results = append(results, sdk.NotifyResult{Outcome: sdk.Retry, Err: err})
			}
			return results, nil
		}
		results = append(results, part...)
	}
	return results, nil
}

// notifyChunk makes one call.
func (i *NotifierInstance) notifyChunk(ctx context.Context, items []*sdk.Notification) ([]sdk.NotifyResult, *sdk.Error) {
	s := i.gate.Enter()
	if s == nil {
		return nil, wire.Unavailable("the plugin is not running")
	}
	defer s.InFlight.Done()
	req := &notifyv1.NotifyRequest{InstanceId: i.name, Generation: s.Generation, Items: make([]*notifyv1.Notification, len(items))}
	for k, n := range items {
		req.Items[k] = wire.NotificationToProto(n)
	}
	var out *notifyv1.NotifyResponse
	err := s.Call(ctx, "notify", s.Timeouts.Call, func(ctx context.Context) (_ string, err error) {
		out, err = notifyv1.NewNotifierServiceClient(s.GRPC).Notify(ctx, req)
		return notifyOutcome(out, len(items)), err
	})
	if err != nil {
		refused, unknown := i.callError(ctx, s, err)
		if refused != nil {
			i.recordFailure(ctx, refused)
			return refusedAll(len(items), refused), nil
		}
		i.recordFailure(ctx, unknown)
		return nil, unknown
	}
	s.RecordAnswer()
	if refused := wire.ErrorFromProto(out.GetError(), s.Redactor); refused != nil {
		i.recordFailure(ctx, refused)
		i.handleInstanceError(s, refused)
		return nil, refused
	}
	results, violation := wire.NotifyResultsFromProto(out, items, s.Redactor)
	if violation != nil {
		unknown := i.rejectAnswer(violation)
		if results == nil {
			return nil, unknown
		}
	}
	var failed *sdk.Error
	for _, r := range results {
		if r.Err != nil {
			failed = r.Err
			i.handleInstanceError(s, r.Err)
		}
	}
	if failed == nil || slices.ContainsFunc(results, func(r sdk.NotifyResult) bool { return r.Outcome == sdk.Delivered }) {
		i.recordProgress()
	} else {
		i.recordFailure(ctx, failed)
	}
	return results, nil
}

// notifyOutcome returns the outcome label of an answer.
func notifyOutcome(out *notifyv1.NotifyResponse, items int) string {
	switch {
	case out.GetError() != nil:
		return "refused"
	case len(out.GetResults()) != items:
		return "contract_breach"
	case items == 1:
		return sdk.NotifyOutcome(out.GetResults()[0].GetOutcome()).String()
	default:
		return "ok"
	}
}

// refusedAll returns the results of a call that the plugin refused as a whole.
func refusedAll(n int, err *sdk.Error) []sdk.NotifyResult {
	outcome := sdk.Retry
	if err.Class == sdk.ClassPermanent || err.Class == sdk.ClassUnsupported {
		outcome = sdk.Dropped
	}
	return slices.Repeat([]sdk.NotifyResult{{Outcome: outcome, Err: err}}, n)
}

// Plugin returns the name that the running plugin reports, such as "slack"; "" if it does
// not run.
func (i *NotifierInstance) Plugin() string {
	if s := i.gate.Current(); s != nil {
		return s.Info.GetName()
	}
	return ""
}

// Previews reports whether the running plugin supports Preview.
func (i *NotifierInstance) Previews() bool {
	s := i.gate.Current()
	return s != nil && slices.Contains(s.Info.GetFeatures(), "notifier/preview/v1")
}

// Preview returns the message that the plugin would send, without sending it. The
// error is always a *sdk.Error: Unsupported when the plugin has no preview.
func (i *NotifierInstance) Preview(ctx context.Context, n *sdk.Notification) (sdk.Preview, error) {
	s := i.gate.Enter()
	if s == nil {
		return sdk.Preview{}, wire.Unavailable("the plugin is not running")
	}
	defer s.InFlight.Done()
	var out *notifyv1.PreviewResponse
	err := s.Call(ctx, "preview", s.Timeouts.Call, func(ctx context.Context) (_ string, err error) {
		out, err = notifyv1.NewNotifierServiceClient(s.GRPC).Preview(ctx, &notifyv1.PreviewRequest{
			InstanceId: i.name, Item: wire.NotificationToProto(n),
		})
		return metrics.Outcome(out.GetRendered()), err
	})
	if err != nil {
		return sdk.Preview{}, i.anyCallError(ctx, s, err)
	}
	s.RecordAnswer()
	switch refused := wire.ErrorFromProto(out.GetError(), s.Redactor); {
	case refused != nil:
		return sdk.Preview{}, refused
	case !out.GetRendered():
		return sdk.Preview{}, i.rejectAnswer(&wire.ContractViolation{Kind: "no_outcome", Detail: "a preview was neither shown nor refused"})
	}
	p := sdk.Preview{Rendered: []byte(s.Redactor.Redact(string(out.GetBody()))), MediaType: text.Ellipsis(out.GetMediaType(), 100)}
	for _, warning := range out.GetWarnings() {
		p.Warnings = append(p.Warnings, text.Ellipsis(s.Redactor.Redact(warning), 500))
	}
	return p, nil
}

// open never returns a compatible session: each of two would apply the service's rate
// limits alone and know only its own deliveries.
func (i *NotifierInstance) open(ctx context.Context, s *conn.Session) (*openResult, *sdk.Error, error) {
	var out *notifyv1.OpenResponse
	err := s.Call(ctx, "open", s.Timeouts.Open, func(ctx context.Context) (_ string, err error) {
		out, err = notifyv1.NewNotifierServiceClient(s.GRPC).Open(ctx, &notifyv1.OpenRequest{InstanceId: i.name})
		return metrics.Outcome(out.GetOpened()), err
	})
	if err != nil || !out.GetOpened() || out.GetProperties() == nil {
		return nil, wire.ErrorFromProto(out.GetError(), s.Redactor), err
	}
	p := wire.NotifierPropertiesFromProto(out.GetProperties())
	return &openResult{commit: func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.properties = p
	}}, nil, nil
}

func (i *NotifierInstance) handOver(context.Context, *conn.Session) {}

func (i *NotifierInstance) onEnd(*conn.Session) {}

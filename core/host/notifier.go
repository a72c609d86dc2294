package host

import (
	"context"
	"slices"
	"sync"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
)

// NotifierInstance is a configured notifier as the rest of the server sees it: it
// is there before the process is and stays while processes come and go. Its
// methods may be called from many goroutines.
type NotifierInstance struct {
	name string
	sup  *supervisor
	gate *gate

	mu         sync.Mutex
	properties sdk.NotifierProperties
}

var _ face = (*NotifierInstance)(nil)

func newNotifierInstance(name string, sup *supervisor) *NotifierInstance {
	return &NotifierInstance{name: name, sup: sup, gate: sup.gate, properties: notifierProperties(nil)}
}

// Notifiers returns the configured notifiers, in the order of the config,
// whatever state they are in.
func (h *Host) Notifiers() []*NotifierInstance {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*NotifierInstance
	for _, s := range h.instances {
		if n, ok := s.face.(*NotifierInstance); ok {
			out = append(out, n)
		}
	}
	return out
}

// Name is the instance's name in the config.
func (i *NotifierInstance) Name() string { return i.name }

// Properties is how the notifier wants to be fed: what it said when it was last
// opened, within what the host allows, and the weakest choice before that.
func (i *NotifierInstance) Properties() sdk.NotifierProperties {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.properties
	p.Formats = slices.Clone(p.Formats)
	return p
}

// Ready blocks until the notifier can be called, or ctx ends.
func (i *NotifierInstance) Ready(ctx context.Context) error { return i.gate.wait(ctx) }

// Available reports whether the notifier can be called now.
func (i *NotifierInstance) Available() bool { return i.gate.current() != nil }

// Notify hands notifications to the plugin and returns a result for each, in the
// same order: Delivered, Duplicate, Retry with a reason or Dropped with a reason.
// More than Properties().MaxItems are sent in several calls, one after the other.
//
// When it returns an error, which is always a *sdk.Error, what became of the
// notifications is unknown, or, when its class is not Transient, none was looked
// at: send them again, with the same IDs, after Ready.
func (i *NotifierInstance) Notify(ctx context.Context, items []*sdk.Notification) ([]sdk.NotifyResult, error) {
	results := make([]sdk.NotifyResult, 0, len(items))
	for chunk := range slices.Chunk(items, i.Properties().MaxItems) {
		some, err := i.notify(ctx, chunk)
		if err != nil {
			if len(results) == 0 {
				return nil, err
			}
			for len(results) < len(items) {
				results = append(results, sdk.NotifyResult{Outcome: sdk.Retry, Err: err})
			}
			return results, nil
		}
		results = append(results, some...)
	}
	return results, nil
}

// notify is one call.
func (i *NotifierInstance) notify(ctx context.Context, items []*sdk.Notification) ([]sdk.NotifyResult, *sdk.Error) {
	s := i.gate.enter()
	if s == nil {
		return nil, unavailable("the plugin is not running")
	}
	defer s.busy.leave()
	req := &notifyv1.NotifyRequest{InstanceId: i.name, Generation: s.generation, Items: make([]*notifyv1.Notification, len(items))}
	for k, n := range items {
		req.Items[k] = notificationToProto(n)
	}
	var out *notifyv1.NotifyResponse
	err := s.call(ctx, "notify", s.timeouts.Call, func(ctx context.Context) (_ string, err error) {
		out, err = notifyv1.NewNotifierServiceClient(s.conn).Notify(ctx, req)
		return notifyOutcome(out, len(items)), err
	})
	if err != nil {
		refused, unknown := i.sup.failed(ctx, s, err)
		if refused != nil {
			return refusedAll(len(items), refused), nil
		}
		return nil, unknown
	}
	s.late.Store(0)
	if refused := errorFromProto(out.GetError(), s.scrub); refused != nil {
		i.sup.heed(s, refused)
		return nil, refused
	}
	results, broken := notifyResults(out, items, s.scrub)
	if broken != nil {
		unknown := i.sup.disbelieve(broken)
		if results == nil {
			return nil, unknown
		}
	}
	for _, r := range results {
		if r.Err != nil {
			i.sup.heed(s, r.Err)
		}
	}
	return results, nil
}

// notifyOutcome is what the metric says of an answer.
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

// refusedAll is the result of a call that the plugin could not take.
func refusedAll(n int, err *sdk.Error) []sdk.NotifyResult {
	outcome := sdk.Retry
	if err.Class == sdk.ClassPermanent || err.Class == sdk.ClassUnsupported {
		outcome = sdk.Dropped
	}
	return slices.Repeat([]sdk.NotifyResult{{Outcome: outcome, Err: err}}, n)
}

// Previews reports whether the plugin that runs can show what it would send.
func (i *NotifierInstance) Previews() bool {
	s := i.gate.current()
	return s != nil && slices.Contains(s.info.GetFeatures(), "notifier/preview/v1")
}

// Preview asks the plugin what it would send; nothing is sent. The error is
// always a *sdk.Error: Unsupported when the plugin cannot show it.
func (i *NotifierInstance) Preview(ctx context.Context, n *sdk.Notification) (sdk.Preview, error) {
	s := i.gate.enter()
	if s == nil {
		return sdk.Preview{}, unavailable("the plugin is not running")
	}
	defer s.busy.leave()
	var out *notifyv1.PreviewResponse
	err := s.call(ctx, "preview", s.timeouts.Call, func(ctx context.Context) (_ string, err error) {
		out, err = notifyv1.NewNotifierServiceClient(s.conn).Preview(ctx, &notifyv1.PreviewRequest{
			InstanceId: i.name, Item: notificationToProto(n),
		})
		return accepted(out.GetRendered()), err
	})
	if err != nil {
		refused, unknown := i.sup.failed(ctx, s, err)
		if refused != nil {
			return sdk.Preview{}, refused
		}
		return sdk.Preview{}, unknown
	}
	s.late.Store(0)
	switch refused := errorFromProto(out.GetError(), s.scrub); {
	case refused != nil:
		return sdk.Preview{}, refused
	case !out.GetRendered():
		return sdk.Preview{}, i.sup.disbelieve(&breach{"no_outcome", "a preview was neither shown nor refused"})
	}
	p := sdk.Preview{Rendered: []byte(s.scrub.clean(string(out.GetBody()))), MediaType: clip(out.GetMediaType(), 100)}
	for _, warning := range out.GetWarnings() {
		p.Warnings = append(p.Warnings, clip(s.scrub.clean(warning), 500))
	}
	return p, nil
}

// open connects a session. Two sessions are never fed at once: each would keep
// to the service's limits on its own, and know only what it delivered itself.
func (i *NotifierInstance) open(ctx context.Context, s *session) (*opening, *sdk.Error, error) {
	var out *notifyv1.OpenResponse
	err := s.call(ctx, "open", s.timeouts.Open, func(ctx context.Context) (_ string, err error) {
		out, err = notifyv1.NewNotifierServiceClient(s.conn).Open(ctx, &notifyv1.OpenRequest{InstanceId: i.name})
		return accepted(out.GetOpened()), err
	})
	if err != nil || !out.GetOpened() || out.GetProperties() == nil {
		return nil, errorFromProto(out.GetError(), s.scrub), err
	}
	p := notifierProperties(out.GetProperties())
	return &opening{adopt: func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.properties = p
	}}, nil, nil
}

func (i *NotifierInstance) handOver(context.Context, *session) {}

func (i *NotifierInstance) left(*session) {}

package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
)

// notifierServer implements the protocol's notifier service.
type notifierServer struct {
	notifyv1.UnimplementedNotifierServiceServer
	*server
}

// notifierValue is a notifier.
type notifierValue struct{ Notifier }

func (v notifierValue) author() any { return v.Notifier }

// Open connects an instance.
func (s *notifierServer) Open(ctx context.Context, req *notifyv1.OpenRequest) (*notifyv1.OpenResponse, error) {
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return &notifyv1.OpenResponse{Error: errorToProto(unknownInstance(req.GetInstanceId()))}, nil
	}
	ctx = in.context(ctx)
	var p NotifierProperties
	err := openAs(ctx, in, func(v notifierValue) (_ int, err error) {
		p, err = v.Open(ctx, OpenRequest{Instance: in.id})
		p.DedupWindow = in.sent.remember(p.DedupWindow)
		return p.MaxInFlight, err
	})
	if err != nil {
		return &notifyv1.OpenResponse{Error: errorToProto(AsError(err))}, nil
	}
	return &notifyv1.OpenResponse{Opened: true, Properties: &notifyv1.NotifierProperties{
		MaxItems: uint32(max(0, p.MaxItems)), MaxInFlight: uint32(max(1, p.MaxInFlight)),
		PerSecond: max(0, p.PerSecond), Burst: uint32(max(0, p.Burst)), PerDestination: p.PerDestination,
		DedupWindow: durationpb.New(p.DedupWindow), MaxTextBytes: uint32(max(0, p.MaxTextBytes)), Formats: p.Formats,
	}}, nil
}

// Notify hands the notifications to the author's Notify, in order, as many at a
// time as the instance allows. What had no turn before the deadline is to be sent
// again.
func (s *notifierServer) Notify(ctx context.Context, req *notifyv1.NotifyRequest) (*notifyv1.NotifyResponse, error) {
	if !s.begin() {
		return &notifyv1.NotifyResponse{Error: errorToProto(draining())}, nil
	}
	defer s.end()
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return &notifyv1.NotifyResponse{Error: errorToProto(unknownInstance(req.GetInstanceId()))}, nil
	}
	ctx, cancel := sooner(in.context(ctx))
	defer cancel()
	out := &notifyv1.NotifyResponse{Results: make([]*notifyv1.NotifyResult, len(req.GetItems()))}
	err := with(in, func(v notifierValue) error {
		var wg sync.WaitGroup
		defer wg.Wait()
		for i, item := range req.GetItems() {
			if err := in.slot(ctx); err != nil {
				out.Results[i] = notifyResultToProto(gaveUp(err))
				continue
			}
			wg.Go(func() {
				defer in.release()
				out.Results[i] = notifyResultToProto(in.notify(ctx, v, item))
			})
		}
		return nil
	})
	if err != nil {
		return &notifyv1.NotifyResponse{Error: errorToProto(AsError(err))}, nil
	}
	return out, nil
}

// notify delivers one notification, once.
func (in *instance) notify(ctx context.Context, v notifierValue, item *notifyv1.Notification) NotifyResult {
	n, err := notificationFromProto(item)
	if err != nil {
		return gaveUp(Permanent(err))
	}
	if n.Expired(time.Now()) {
		return gaveUp(&Error{Class: ClassPermanent, Code: "expired", Message: "it came too late", Source: SourcePlugin})
	}
	entry, before := in.sent.begin(ctx, n.ID, time.Now())
	if before != nil {
		return *before
	}
	var r NotifyResult
	defer func() { in.sent.end(entry, r, time.Now()) }()
	err = guard(in.log, func() (err error) {
		r, err = v.Notify(ctx, n)
		return err
	})
	if err == nil {
		return r
	}
	e := AsError(err)
	if e.Class == ClassConfig && n.Destination != "" {
		c := *e
		c.Class = ClassPermanent
		e = &c
	}
	failed := gaveUp(e)
	failed.Rate = r.Rate
	r = failed
	return r
}

// gaveUp is the result of a notification that was not delivered.
func gaveUp(err error) NotifyResult {
	e := AsError(err)
	if e.Class == ClassPermanent || e.Class == ClassUnsupported {
		return NotifyResult{Outcome: Dropped, Err: e}
	}
	return NotifyResult{Outcome: Retry, Err: e}
}

// sooner ends a little before the host's deadline, so that finished results still arrive.
func sooner(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	margin := min(time.Until(deadline)/10, 250*time.Millisecond)
	return context.WithDeadline(ctx, deadline.Add(-margin))
}

// Preview returns the message of a notifier that supports previews. It sends nothing.
func (s *notifierServer) Preview(ctx context.Context, req *notifyv1.PreviewRequest) (*notifyv1.PreviewResponse, error) {
	in := s.instance(req.GetInstanceId())
	if in == nil {
		return &notifyv1.PreviewResponse{Error: errorToProto(unknownInstance(req.GetInstanceId()))}, nil
	}
	n, err := notificationFromProto(req.GetItem())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	ctx = in.context(ctx)
	var p Preview
	err = work(ctx, in, func(v notifierValue) (err error) {
		previewer, ok := v.Notifier.(Previewer)
		if !ok {
			return Errorf(ClassUnsupported, "no_preview", "the plugin %s shows no preview", s.plugin.Name)
		}
		p, err = previewer.Preview(ctx, n)
		return err
	})
	if err != nil {
		return &notifyv1.PreviewResponse{Error: errorToProto(AsError(err))}, nil
	}
	return &notifyv1.PreviewResponse{Rendered: true, Body: p.Rendered, MediaType: p.MediaType, Warnings: p.Warnings}, nil
}

// notificationFromProto reads a notification.
func notificationFromProto(m *notifyv1.Notification) (*Notification, error) {
	n := &Notification{
		ID: m.GetNotificationId(), Attempt: m.GetAttempt(), Destination: m.GetDestination(),
		Project: ProjectRef{ID: m.GetProject().GetId(), Name: m.GetProject().GetName(), URL: m.GetProject().GetUrl()},
		Action: ActionRef{
			ID: m.GetAction().GetId(), Name: m.GetAction().GetName(), URL: m.GetAction().GetUrl(), Tags: m.GetAction().GetTags(),
		},
		EventURL: m.GetEventUrl(),
		Person: PersonRef{
			Display: m.GetPerson().GetDisplay(), URL: m.GetPerson().GetUrl(), Properties: m.GetPerson().GetPropertiesJson(),
		},
		Text: m.GetText(), Template: m.GetTemplate(), Suppressed: m.GetSuppressed(), Test: m.GetTest(),
	}
	if us := m.GetExpiresUs(); us != 0 {
		n.ExpiresAt = time.UnixMicro(us).UTC()
	}
	if len(m.GetEventJson()) > 0 {
		if err := json.Unmarshal(m.GetEventJson(), &n.Event); err != nil {
			return nil, fmt.Errorf("decode the event: %w", err)
		}
	}
	for _, s := range m.GetSegments() {
		n.Segments = append(n.Segments, Segment{Kind: segmentKind(s.GetKind()), Value: s.GetValue(), Href: s.GetHref()})
	}
	return n, nil
}

// segmentKind takes a kind that a newer host may send as plain text.
func segmentKind(k notifyv1.Segment_Kind) SegmentKind {
	if k <= notifyv1.Segment_KIND_UNSPECIFIED || k > notifyv1.Segment_KIND_USER {
		return SegmentText
	}
	return SegmentKind(k)
}

// notifyResultToProto passes the author's answer on. An answer without an outcome
// stays without one: the host counts it and sends the notification again.
func notifyResultToProto(r NotifyResult) *notifyv1.NotifyResult {
	out := &notifyv1.NotifyResult{
		Outcome: notifyv1.NotifyResult_Outcome(r.Outcome), ProviderMessageId: r.MessageID, Error: errorToProto(r.Err),
	}
	if r.Rate != nil {
		out.Rate = &notifyv1.Rate{
			Remaining: uint32(max(0, r.Rate.Remaining)), ResetAfter: durationpb.New(max(0, r.Rate.ResetAfter)), Scope: r.Rate.Scope,
		}
	}
	return out
}

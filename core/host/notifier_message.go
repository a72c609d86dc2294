package host

import (
	"fmt"
	"math"
	"time"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
)

// maxNotifyItems is how many notifications go into one call at the most.
const maxNotifyItems = 100

// notifierProperties reads what a notifier wants, within what the host allows.
func notifierProperties(p *notifyv1.NotifierProperties) sdk.NotifierProperties {
	out := sdk.NotifierProperties{
		MaxItems:       min(int(p.GetMaxItems()), maxNotifyItems),
		MaxInFlight:    min(max(1, int(p.GetMaxInFlight())), maxInFlight),
		Burst:          int(min(p.GetBurst(), 1e6)),
		PerDestination: p.GetPerDestination(),
		DedupWindow:    min(max(0, p.GetDedupWindow().AsDuration()), 24*time.Hour),
		MaxTextBytes:   int(min(p.GetMaxTextBytes(), math.MaxInt32)),
	}
	if rate := p.GetPerSecond(); rate > 0 && rate < 1e6 { // a NaN is neither
		out.PerSecond = rate
	}
	if out.MaxItems == 0 {
		out.MaxItems = maxNotifyItems
	}
	for _, f := range p.GetFormats() {
		if f == sdk.FormatPlain || f == sdk.FormatMarkdown || f == sdk.FormatSegments {
			out.Formats = append(out.Formats, f)
		}
	}
	if len(out.Formats) == 0 {
		out.Formats = []string{sdk.FormatSegments}
	}
	return out
}

// notificationToProto writes a notification.
func notificationToProto(n *sdk.Notification) *notifyv1.Notification {
	out := &notifyv1.Notification{
		NotificationId: n.ID, Attempt: n.Attempt, Destination: n.Destination,
		Project:   &notifyv1.Project{Id: n.Project.ID, Name: n.Project.Name, Url: n.Project.URL},
		Action:    &notifyv1.Action{Id: n.Action.ID, Name: n.Action.Name, Url: n.Action.URL, Tags: n.Action.Tags},
		EventJson: n.Event.AppendJSON(nil), EventUrl: n.EventURL,
		Person: &notifyv1.Person{Display: n.Person.Display, Url: n.Person.URL, PropertiesJson: n.Person.Properties},
		Text:   n.Text, Template: n.Template, Suppressed: n.Suppressed, Test: n.Test,
	}
	if !n.ExpiresAt.IsZero() {
		out.ExpiresUs = n.ExpiresAt.UnixMicro()
	}
	for _, s := range n.Segments {
		out.Segments = append(out.Segments, &notifyv1.Segment{Kind: notifyv1.Segment_Kind(s.Kind), Value: s.Value, Href: s.Href})
	}
	return out
}

// notifyResults reads an answer. Results are nil when there is not one for each
// item. An item without an outcome that can be believed is to be sent again, and
// the breach is returned beside the results.
func notifyResults(out *notifyv1.NotifyResponse, items []*sdk.Notification, scrub *scrubber) ([]sdk.NotifyResult, *breach) {
	if len(out.GetResults()) != len(items) {
		return nil, &breach{"result_count", fmt.Sprintf("%d results for %d notifications", len(out.GetResults()), len(items))}
	}
	var broken *breach
	results := make([]sdk.NotifyResult, len(items))
	for k, m := range out.GetResults() {
		r := &results[k]
		*r = sdk.NotifyResult{
			Outcome: sdk.NotifyOutcome(m.GetOutcome()), MessageID: clip(scrub.clean(m.GetProviderMessageId()), 200),
			Err: errorFromProto(m.GetError(), scrub), Rate: rateFromProto(m.GetRate(), scrub),
		}
		switch m.GetOutcome() {
		case notifyv1.NotifyResult_OUTCOME_DELIVERED, notifyv1.NotifyResult_OUTCOME_DUPLICATE:
			r.Err = nil
		case notifyv1.NotifyResult_OUTCOME_RETRY, notifyv1.NotifyResult_OUTCOME_DROPPED:
			r.MessageID = ""
			if r.Err == nil {
				r.Err = unsure("unspecified", r.Outcome.String()+" without a reason")
			}
		default:
			broken = &breach{"no_outcome", fmt.Sprintf("outcome %d", m.GetOutcome())}
			*r = sdk.NotifyResult{Outcome: sdk.Retry, Err: unsure("contract_breach", broken.Error()), Rate: r.Rate}
		}
		if r.Err != nil && r.Err.Class == sdk.ClassConfig && items[k].Destination != "" {
			// It is the destination that is wrong, not the instance.
			r.Err.Class, r.Outcome = sdk.ClassPermanent, sdk.Dropped
		}
	}
	return results, broken
}

// rateFromProto keeps nil nil.
func rateFromProto(m *notifyv1.Rate, scrub *scrubber) *sdk.Rate {
	if m == nil {
		return nil
	}
	return &sdk.Rate{
		Remaining:  int(min(m.GetRemaining(), math.MaxInt32)),
		ResetAfter: min(max(0, m.GetResetAfter().AsDuration()), maxRetryAfter),
		Scope:      clip(scrub.clean(m.GetScope()), 200),
	}
}

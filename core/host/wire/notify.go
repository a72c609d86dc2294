package wire

import (
	"fmt"
	"math"
	"time"

	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
)

// maxNotifyItems is the largest number of notifications in one call.
const maxNotifyItems = 100

// NotifierPropertiesFromProto converts the properties of a notifier, within the limits
// of the host. nil has the defaults.
func NotifierPropertiesFromProto(p *notifyv1.NotifierProperties) sdk.NotifierProperties {
	out := sdk.NotifierProperties{
		MaxItems:       min(int(p.GetMaxItems()), maxNotifyItems),
		MaxInFlight:    min(max(1, int(p.GetMaxInFlight())), maxInFlight),
		Burst:          int(min(p.GetBurst(), 1e6)),
		PerDestination: p.GetPerDestination(),
		DedupWindow:    min(max(0, p.GetDedupWindow().AsDuration()), 24*time.Hour),
		MaxTextBytes:   int(min(p.GetMaxTextBytes(), math.MaxInt32)),
	}
	if rate := p.GetPerSecond(); rate > 0 && rate < 1e6 { // false for NaN, too
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

// NotificationToProto converts a notification.
func NotificationToProto(n *sdk.Notification) *notifyv1.Notification {
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

// NotifyResultsFromProto converts the answer for items. Results are nil when their
// number is wrong. An item without a valid outcome becomes Retry, and the violation
// is returned along with the results.
func NotifyResultsFromProto(out *notifyv1.NotifyResponse, items []*sdk.Notification, redactor *secret.Redactor) ([]sdk.NotifyResult, *ContractViolation) {
	if len(out.GetResults()) != len(items) {
		return nil, &ContractViolation{"result_count", fmt.Sprintf("%d results for %d notifications", len(out.GetResults()), len(items))}
	}
	var violation *ContractViolation
	results := make([]sdk.NotifyResult, len(items))
	for k, m := range out.GetResults() {
		r := &results[k]
		*r = sdk.NotifyResult{
			Outcome: sdk.NotifyOutcome(m.GetOutcome()), MessageID: text.Ellipsis(redactor.Redact(m.GetProviderMessageId()), 200),
			Err: ErrorFromProto(m.GetError(), redactor), Rate: rateFromProto(m.GetRate(), redactor),
		}
		switch m.GetOutcome() {
		case notifyv1.NotifyResult_OUTCOME_DELIVERED, notifyv1.NotifyResult_OUTCOME_DUPLICATE:
			r.Err = nil
		case notifyv1.NotifyResult_OUTCOME_RETRY, notifyv1.NotifyResult_OUTCOME_DROPPED:
			r.MessageID = ""
			if r.Err == nil {
				r.Err = UnknownOutcome("unspecified", r.Outcome.String()+" without a reason")
			}
		default:
			violation = &ContractViolation{"no_outcome", fmt.Sprintf("outcome %d", m.GetOutcome())}
			*r = sdk.NotifyResult{Outcome: sdk.Retry, Err: UnknownOutcome("contract_breach", violation.Error()), Rate: r.Rate}
		}
		if r.Err != nil && r.Err.Class == sdk.ClassConfig && items[k].Destination != "" {
			// The destination is wrong, not the config of the instance.
			r.Err.Class, r.Outcome = sdk.ClassPermanent, sdk.Dropped
		}
	}
	return results, violation
}

// rateFromProto keeps nil nil.
func rateFromProto(m *notifyv1.Rate, redactor *secret.Redactor) *sdk.Rate {
	if m == nil {
		return nil
	}
	return &sdk.Rate{
		Remaining:  int(min(m.GetRemaining(), math.MaxInt32)),
		ResetAfter: min(max(0, m.GetResetAfter().AsDuration()), maxRetryAfter),
		Scope:      text.Ellipsis(redactor.Redact(m.GetScope()), 200),
	}
}

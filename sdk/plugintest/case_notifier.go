package plugintest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

const (
	delivered = notifyv1.NotifyResult_OUTCOME_DELIVERED
	duplicate = notifyv1.NotifyResult_OUTCOME_DUPLICATE
	dropped   = notifyv1.NotifyResult_OUTCOME_DROPPED
)

// notifierCases are the promises of a notifier.
var notifierCases = group{"notifier", []oneCase{
	{"opens", func(c *check) { c.openNotifier() }},
	{"declares numbers that can be meant", notifierNumbersCase},
	{"delivers a message", func(c *check) {
		before := c.messages()
		c.delivers(c.notification("plugintest says hello"))
		c.came(before, 1)
	}},
	{"posts the same message once", func(c *check) {
		if c.openNotifier().GetDedupWindow().AsDuration() <= 0 {
			c.skip("it does not know again what it has delivered")
		}
		before := c.messages()
		n := c.notification("plugintest says this once")
		c.delivers(n)
		n.Attempt = 2
		if out := c.notify(n)[0]; out.GetOutcome() != duplicate {
			c.fail("the second delivery of an id is %s, want DUPLICATE", out.GetOutcome())
		}
		c.came(before, 1)
	}},
	{"answers for each of several", func(c *check) {
		before := c.messages()
		c.delivers(c.notification("plugintest, one"), c.notification("plugintest, two"), c.notification("plugintest, three"))
		c.came(before, 3)
	}},
	{"drops what is too late", func(c *check) {
		before := c.messages()
		n := c.notification("plugintest is late")
		n.ExpiresUs = time.Now().Add(-time.Minute).UnixMicro()
		if out := c.notify(n)[0]; out.GetOutcome() != dropped {
			c.fail("a message that has expired is %s, want DROPPED", out.GetOutcome())
		}
		c.came(before, 0)
	}},
	{"tells how many were left out", func(c *check) {
		n := c.notification("plugintest, and more")
		n.Suppressed = 214
		if body := c.rendered(n); !strings.Contains(body, "214") {
			c.fail("214 messages were left out before this one, and it does not say so: %s", observe.Clip(body))
		}
	}},
	{"takes nothing in an event for a command", func(c *check) {
		if len(c.target.Control) == 0 {
			c.skip("nobody said what would be a command there")
		}
		for _, text := range c.target.Control {
			n := c.notification("by " + text)
			n.Segments = []*notifyv1.Segment{
				{Kind: notifyv1.Segment_KIND_TEXT, Value: "by "}, {Kind: notifyv1.Segment_KIND_USER, Value: text, Href: "https://example.com/p"},
				{Kind: notifyv1.Segment_KIND_BOLD, Value: text},
			}
			if body := c.rendered(n); strings.Contains(unescaped(body), text) {
				c.fail("%q of an event stands in the message as it is: %s", text, observe.Clip(body))
			}
		}
	}},
	{"survives odd messages", func(c *check) {
		for _, text := range []string{"", strings.Repeat("ä", 40_000), "a\x00b\r\nBcc: somebody@example.com", "\u202e right to left", "*_`~|<>&[]()@#"} {
			n := c.notification(text)
			n.Segments = nil
			if out := c.notify(n)[0]; out.GetOutcome() == 0 {
				c.fail("%q is answered without an outcome", observe.Clip(text))
			}
		}
	}},
	{"does not mix up another instance", func(c *check) {
		c.openNotifier()
		ctx, cancel := c.call(20 * time.Second)
		defer cancel()
		out, err := c.process().Notifier().Notify(ctx, &notifyv1.NotifyRequest{InstanceId: "never-there", Items: []*notifyv1.Notification{c.notification("lost")}})
		c.no(err, "Notify")
		for _, r := range out.GetResults() {
			if r.GetOutcome() == delivered {
				c.fail("it delivers for an instance that is not there")
			}
		}
	}},
}}

func (c *check) openNotifier() *notifyv1.NotifierProperties {
	if c.notifies != nil {
		return c.notifies
	}
	c.accepted(instanceID, c.target.Config)
	ctx, cancel := c.call(30 * time.Second)
	defer cancel()
	out, err := c.process().Notifier().Open(ctx, &notifyv1.OpenRequest{InstanceId: instanceID})
	c.no(err, "Open")
	if !out.GetOpened() || out.GetProperties() == nil {
		c.fail("it does not open: %s", failed(out.GetError()))
	}
	c.notifies = out.GetProperties()
	return c.notifies
}

// notification is a message about an event.
func (c *check) notification(text string) *notifyv1.Notification {
	ev := event("ada", `{"plan":"pro"}`)
	return &notifyv1.Notification{
		NotificationId: "plugintest-" + uuid.NewString(), Attempt: 1, ExpiresUs: time.Now().Add(time.Hour).UnixMicro(),
		Project: &notifyv1.Project{Id: 1, Name: "Shop", Url: "https://example.com/project/1"},
		Action:  &notifyv1.Action{Id: 1, Name: "Paid", Url: "https://example.com/project/1/action/1"},
		Person:  &notifyv1.Person{Display: "Ada", PropertiesJson: []byte(`{"plan":"pro"}`)}, EventJson: ev.AppendJSON(nil),
		Text: text, Segments: []*notifyv1.Segment{{Kind: notifyv1.Segment_KIND_TEXT, Value: text}}, Template: "[event]", Test: true,
	}
}

func (c *check) notify(items ...*notifyv1.Notification) []*notifyv1.NotifyResult {
	props := c.openNotifier()
	most := len(items)
	if m := int(props.GetMaxItems()); m > 0 {
		most = min(most, m)
	}
	var results []*notifyv1.NotifyResult
	for part := range slices.Chunk(items, most) {
		ctx, cancel := c.call(time.Minute)
		out, err := c.process().Notifier().Notify(ctx, &notifyv1.NotifyRequest{InstanceId: instanceID, Generation: 1, Items: part})
		cancel()
		c.no(err, "Notify")
		if out.GetError() != nil {
			c.fail("it looks at no message: %s", failed(out.GetError()))
		}
		if len(out.GetResults()) != len(part) {
			c.fail("%d results for %d messages", len(out.GetResults()), len(part))
		}
		results = append(results, out.GetResults()...)
	}
	return results
}

// delivers fails unless each message is delivered.
func (c *check) delivers(items ...*notifyv1.Notification) {
	for _, r := range c.notify(items...) {
		if r.GetOutcome() != delivered {
			c.fail("a message is %s: %s", r.GetOutcome(), failed(r.GetError()))
		}
	}
}

// messages counts the messages at the destination, when the target can.
func (c *check) messages() int {
	if c.target.Messages == nil {
		return 0
	}
	n, err := c.target.Messages()
	c.no(err, "look at the destination")
	return n
}

func (c *check) came(before, want int) {
	if c.target.Messages == nil {
		return
	}
	if got := c.messages() - before; got != want {
		c.fail("%d messages have come to the destination, want %d", got, want)
	}
}

// rendered is the message as it would be sent.
func (c *check) rendered(n *notifyv1.Notification) string {
	c.openNotifier()
	if !slices.Contains(c.info.GetFeatures(), "notifier/preview/v1") {
		c.skip("it has no preview")
	}
	ctx, cancel := c.call(20 * time.Second)
	defer cancel()
	out, err := c.process().Notifier().Preview(ctx, &notifyv1.PreviewRequest{InstanceId: instanceID, Item: n})
	c.no(err, "Preview")
	switch {
	case out.GetError().GetClass() == pluginv1.Error_CLASS_UNSUPPORTED:
		c.skip("it has no preview")
	case !out.GetRendered():
		c.fail("Preview fails: %s", failed(out.GetError()))
	}
	return string(out.GetBody())
}

// unescaped decodes JSON escapes, which do not hide a secret.
func unescaped(body string) string {
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		return body
	}
	return fmt.Sprint(v)
}

package ingestion_test

import (
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/cookieless"
	"github.com/guidonhq/guidon/core/ingestion/capture"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// guests identifies visitors by the texts that describe them.
type guests struct{}

func (guests) Identify(v *cookieless.Visitor) (cookieless.Identity, bool) {
	if v.Agent == "nobody" {
		return cookieless.Identity{}, false
	}
	text := strings.Join([]string{v.Addr.String(), v.Host, v.Agent, v.Zone, v.Extra, v.At.Format("0102")}, "|")
	return cookieless.Identity{DistinctID: text, DeviceID: "device", SessionID: "session"}, v.Addr != netip.Addr{}
}

// The journal has the ids that stand for a visitor, and nothing that they derive
// from.
func TestCaptureIdentifiesVisitorsWithoutCookies(t *testing.T) {
	t.Parallel()
	const ids = `"$cookieless_mode":true,"$device_id":"device","$session_id":"session"`
	for _, c := range []struct{ name, item, id, want, said string }{
		{"by the request", `{"event":"a","distinct_id":"$posthog_cookieless","properties":{"$cookieless_mode":true,"b":1}}`,
			"127.0.0.1|https://shop.example|agent|||0501", `{"b":1,` + ids + `,"$process_person_profile":false}`, ""},
		{"by the sentinel alone", `{"event":"a","distinct_id":"$posthog_cookieless"}`,
			"127.0.0.1|https://shop.example|agent|||0501", `{` + ids + `,"$process_person_profile":false}`, ""},
		{"by its properties", `{"event":"a","properties":{"distinct_id":"$posthog_cookieless","$cookieless_mode":true,"$ip":"192.0.2.7","$host":"a.example","$raw_user_agent":"mine",` +
			`"$timezone":"UTC","$cookieless_extra":"x","$set":{"$raw_user_agent":"mine","n":1}},"timestamp":"2024-04-30T10:00:00Z"}`,
			"192.0.2.7|a.example|mine|UTC|x|0430", `{"$host":"a.example","$timezone":"UTC",` + ids + `,"distinct_id":"192.0.2.7|a.example|mine|UTC|x|0430","$process_person_profile":false}`, ""},
		{"who has logged in", `{"event":"a","distinct_id":"u","properties":{"$cookieless_mode":true,"$session_id":"old"}}`, "u", `{` + ids + `}`, ""},
		{"at login, without a merge of all visitors", `{"event":"$identify","distinct_id":"u","properties":{"$cookieless_mode":true,"$anon_distinct_id":"$posthog_cookieless"}}`, "u", `{` + ids + `}`, ""},
		{"in an alias", `{"event":"$create_alias","distinct_id":"u","properties":{"$cookieless_mode":true,"alias":"$posthog_cookieless"}}`, "", "", "-" + event.KindPersonlessIdentify},
		{"who cannot be told apart", `{"event":"a","distinct_id":"$posthog_cookieless","properties":{"$cookieless_mode":true,"$raw_user_agent":"nobody"}}`,
			cookieless.Sentinel, `{"$cookieless_mode":true,"$process_person_profile":false}`, event.KindCookieless},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := new(memoryJournal)
			base := webtest.Serve(t, keys(), capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()).WithVisitors(guests{}))
			item := c.item
			if !strings.Contains(item, "timestamp") {
				item = strings.TrimSuffix(item, "}") + `,"timestamp":"2024-05-01T10:00:00Z"}`
			}
			send(t, "POST", base+"/batch/", "", `{"api_key":"phc_x","batch":[`+item+`]}`, "Origin", "https://shop.example", "User-Agent", "agent")
			events, said := j.events(t)
			if said != c.said {
				t.Errorf("notices %q, want %q", said, c.said)
			}
			if len(events) == 1 && (events[0].DistinctID != c.id || string(events[0].Properties) != c.want) || len(events) != min(len(c.want), 1) {
				t.Errorf("got %+v\nwant %s %s", events, c.id, c.want)
			}
			if rec, err := event.ParseRecord(j.records[0]); err != nil || rec.ClientIP.IsValid() || strings.Contains(string(rec.Items), `"mine"`) {
				t.Errorf("the journal holds %v %s, %v", rec.ClientIP, rec.Items, err)
			}
		})
	}
}

// Other events of the request keep their address, in version 1 of the protocol of
// 2026, too.
func TestVisitorsWithoutCookiesBesideOthers(t *testing.T) {
	t.Parallel()
	j := new(memoryJournal)
	base := webtest.Serve(t, keys(), capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()).WithVisitors(guests{}))
	send(t, "POST", base+"/batch/", "", `{"api_key":"phc_x","batch":[{"event":"a","distinct_id":"$posthog_cookieless"},{"event":"a","distinct_id":"u","properties":{"$cookieless_mode":false}}]}`)
	events, _ := j.events(t)
	if len(events) != 2 || strings.Contains(string(events[0].Properties), "$ip") || string(events[1].Properties) != `{"$ip":"127.0.0.1","$cookieless_mode":false}` {
		t.Errorf("%+v", events)
	}
	j = new(memoryJournal)
	base = webtest.Serve(t, keys(), capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()).WithVisitors(guests{}))
	got := send(t, "POST", base+"/i/v1/analytics/events", "application/json", `{"batch":[{"event":"a","distinct_id":"$posthog_cookieless","session_id":"old","uuid":"0190a5a2-7b3c-7000-8000-0000000000ff",`+
		`"timestamp":"2024-05-01T10:00:00Z","options":{"cookieless_mode":true,"process_person_profile":true}}]}`, "Authorization", "Bearer phc_x",
		"PostHog-Sdk-Info", "posthog-js/2", "PostHog-Attempt", "1", "PostHog-Request-Id", "x", "PostHog-Request-Timestamp", "2024-05-01T10:00:00Z", "User-Agent", "agent")
	events, _ = j.events(t)
	if len(events) != 1 || events[0].DistinctID != "127.0.0.1||agent|||0501" || !strings.Contains(string(events[0].Properties), `"$session_id":"session"`) ||
		!strings.Contains(string(events[0].Properties), `"$process_person_profile":false`) || strings.Contains(string(events[0].Properties), "$ip") {
		t.Errorf("%+v: %+v", got, events)
	}
}

package ingestion_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/fault"
)

// v1 sends a request of the 2026 protocol; header overrides and, with an empty
// value, removes.
func v1(t *testing.T, base, body string, header ...string) answer {
	t.Helper()
	all := map[string]string{
		"Authorization": "bearer phc_x", "PostHog-Sdk-Info": "posthog-go/1.9.0", "PostHog-Attempt": "1",
		"PostHog-Request-Id":        "0190a5a2-7b3c-7000-8000-0000000000aa",
		"PostHog-Request-Timestamp": time.Now().UTC().Format(time.RFC3339Nano), "Content-Type": "application/json",
	}
	for i := 0; i+1 < len(header); i += 2 {
		all[header[i]] = header[i+1]
	}
	var list []string
	for name, value := range all {
		if value != "" {
			list = append(list, name, value)
		}
	}
	return send(t, "POST", base+"/i/v1/analytics/events", "", body, list...)
}

const (
	id1 = "a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d"
	id2 = "A1B2C3D4-E5F6-4A7B-8C9D-0E1F2A3B4C5E"
)

func TestCaptureV1Results(t *testing.T) {
	t.Parallel()
	j := new(memoryJournal)
	base := serve(t, j)
	event := func(id, rest string) string {
		return `{"batch":[{"uuid":"` + id + `"` + rest + `}]}`
	}
	cases := []struct{ name, body, want string }{
		{"an event", event(id1, `,"event":"a","distinct_id":"u","timestamp":"2026-03-19T14:29:58Z","properties":{}`), `{"results":{"` + id1 + `":{"result":"ok"}}}`},
		{"the uuid comes back as it was sent", event(id2, `,"event":"a","distinct_id":"u"`), `{"results":{"` + id2 + `":{"result":"ok"}}}`},
		{"no name", event(id1, `,"distinct_id":"u"`), `{"result":"drop","details":"missing_event_name"}`},
		{"a long name", event(id1, `,"distinct_id":"u","event":"`+strings.Repeat("x", 201)+`"`), `{"result":"drop","details":"event_name_too_long"}`},
		{"no distinct id", event(id1, `,"event":"a"`), `{"result":"drop","details":"missing_distinct_id"}`},
		{"a long distinct id, in bytes", event(id1, `,"event":"a","distinct_id":"`+strings.Repeat("é", 101)+`"`), `{"result":"drop","details":"distinct_id_too_large"}`},
		{"a time in another form", event(id1, `,"event":"a","distinct_id":"u","timestamp":"2026-03-19"`), `{"result":"drop","details":"invalid_event_timestamp"}`},
		{"properties that are no object", event(id1, `,"event":"a","distinct_id":"u","properties":[]`), `{"result":"drop","details":"malformed_event_properties"}`},
		{"a performance event", event(id1, `,"event":"$performance_event","distinct_id":"u"`), `{"result":"drop","details":"dropped_performance_event"}`},
		{"a change", event(id1, `,"event":"a","distinct_id":"u","timestamp":"2999-01-01T00:00:00Z"`), `{"result":"warning","details":"event_timestamp_in_future"}`},
		{"the same event twice is one", `{"batch":[{"uuid":"` + id1 + `","event":"a","distinct_id":"u"},{"uuid":"` + id1 + `","event":"a","distinct_id":"u"}]}`, `{"results":{"` + id1 + `":{"result":"ok"}}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := v1(t, base, c.body); got.status != 200 || !strings.Contains(got.body, c.want) {
				t.Errorf("got %d %s", got.status, got.body)
			}
		})
	}
}

func TestCaptureV1WritesOptionsIntoProperties(t *testing.T) {
	t.Parallel()
	j := new(memoryJournal)
	got := v1(t, serve(t, j), `{"created_at":"2026-03-19T14:30:00Z","historical_migration":true,"batch":[{"event":"paid","uuid":"`+id1+`","distinct_id":"u1",
		"timestamp":"2026-03-19T14:29:58Z","session_id":"s","window_id":"w",
		"options":{"process_person_profile":false,"cookieless_mode":true,"disable_skew_correction":true,"product_tour_id":null},
		"properties":{"amount":9,"$session_id":"old","$set":{"plan":"pro"}}}]}`, "PostHog-Request-Timestamp", "2026-03-19T14:40:00Z")
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	events, _ := j.events(t)
	const want = `{"$sent_at":"2026-03-19T14:40:00.000000Z","$lib_version":"1.9.0","$lib":"posthog-go","$ignore_sent_at":true,"$cookieless_mode":true,` +
		`"$process_person_profile":false,"$window_id":"w","$session_id":"s","amount":9}`
	if string(events[0].Properties) != want {
		t.Errorf("got  %s\nwant %s", events[0].Properties, want)
	}
	if at := events[0].Timestamp.Format(time.RFC3339); at != "2026-03-19T14:29:58Z" {
		t.Errorf("the clock was corrected: %s", at)
	}
}

func TestCaptureV1Rejects(t *testing.T) {
	t.Parallel()
	const fine = `{"batch":[{"uuid":"` + id1 + `","event":"a","distinct_id":"u"}]}`
	cases := []struct {
		name, body string
		header     []string
		status     int
		want       string
	}{
		{"everything that is missing at once", fine, []string{"Authorization", "", "PostHog-Attempt", "", "PostHog-Sdk-Info", ""}, 400, "Missing headers: Authorization, PostHog-Sdk-Info, PostHog-Attempt."},
		{"a wrong key", fine, []string{"Authorization", "Bearer nope"}, 401, `"error":"invalid_api_token"`},
		{"another content type", fine, []string{"Content-Type", "text/plain"}, 415, `"error":"unsupported_content_type"`},
		{"another encoding", fine, []string{"Content-Encoding", "lz64"}, 415, `"error":"unsupported_encoding"`},
		{"attempt 0", fine, []string{"PostHog-Attempt", "0"}, 400, `"error":"invalid_headers"`},
		{"a clock that is none", fine, []string{"PostHog-Request-Timestamp", "now"}, 400, `"error":"invalid_headers"`},
		{"no batch", `{}`, nil, 400, `"error":"invalid_batch"`},
		{"an array", `[{}]`, nil, 400, `"error":"invalid_batch"`},
		{"no JSON", `{`, nil, 400, `"error":"invalid_batch"`},
		{"an empty batch", `{"batch":[]}`, nil, 400, `"error":"empty_batch"`},
		{"an event without a uuid", `{"batch":[{"event":"a","distinct_id":"u"}]}`, nil, 400, `"error":"invalid_event_uuid"`},
		{"a uuid that is none", `{"batch":[{"uuid":"x","event":"a","distinct_id":"u"}]}`, nil, 400, `"error":"invalid_event_uuid"`},
	}
	j := new(memoryJournal)
	base := serve(t, j)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := v1(t, base, c.body, c.header...)
			if got.status != c.status || !strings.Contains(got.body, c.want) {
				t.Errorf("got %d %s", got.status, got.body)
			}
			if got.header.Get("Accept") != "application/json" {
				t.Errorf("it does not say what it takes: %v", got.header)
			}
		})
	}
	if len(j.records) != 0 {
		t.Errorf("%d records", len(j.records))
	}
	full := fault.New(fault.Unavailable, "journal_full", "Full.").After(10 * time.Second)
	if got := v1(t, serve(t, &memoryJournal{err: full}), fine); got.status != 503 || got.header.Get("Retry-After") != "10" {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestCaptureV1AcceptsCompressedBodies(t *testing.T) {
	t.Parallel()
	j := new(memoryJournal)
	got := v1(t, serve(t, j), gzipped(`{"batch":[{"uuid":"`+id1+`","event":"a","distinct_id":"u"}]}`), "Content-Encoding", "gzip")
	if got.status != 200 || len(j.records) != 1 {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestCaptureResultsOnRequest(t *testing.T) {
	t.Parallel()
	j := new(memoryJournal)
	base := serve(t, j)
	got := send(t, "POST", base+"/batch/", "application/json", `{"api_key":"phc_x","batch":[{"event":"a","distinct_id":"u"},{"event":"b"},{"event":"c","distinct_id":"u","timestamp":"soon"}]}`,
		"Guidon-Results", "1")
	const want = `{"status":1,"results":[{"result":"ok"},{"result":"drop","details":"skipping_event_invalid_distinct_id"},{"result":"warning","details":"ignored_invalid_timestamp"}]}`
	if got.status != 200 || got.body != want {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

// Clients of the 2026 protocol remove $lib and $lib_version from their events and
// send them in a header. Without $lib the operating system of a server is written
// to persons.
func TestCaptureV1TakesTheLibraryFromItsHeader(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ header, properties, lib, version string }{
		"name and version":      {"posthog-python/7.91.1", `{}`, `"posthog-python"`, `"7.91.1"`},
		"without properties":    {"posthog-python/7.91.1", `null`, `"posthog-python"`, `"7.91.1"`},
		"a name alone":          {"mine", `{}`, `"mine"`, ``},
		"text to escape":        {`a"b/1`, `{}`, `"a\"b"`, `"1"`},
		"not over given values": {"posthog-python/7.91.1", `{"$lib":"mine","$lib_version":"2"}`, `"mine"`, `"2"`},
		"over null":             {"posthog-python/7.91.1", `{"$lib":null}`, `"posthog-python"`, `"7.91.1"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := new(memoryJournal)
			got := v1(t, serve(t, j), `{"batch":[{"event":"a","uuid":"`+id1+`","distinct_id":"u","properties":`+c.properties+`}]}`, "PostHog-Sdk-Info", c.header)
			if got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			events, _ := j.events(t)
			var p map[string]json.RawMessage
			if err := json.Unmarshal(events[0].Properties, &p); err != nil {
				t.Fatalf("%v: %s", err, events[0].Properties)
			}
			if string(p["$lib"]) != c.lib || string(p["$lib_version"]) != c.version {
				t.Errorf("$lib %s, $lib_version %s; want %s, %s", p["$lib"], p["$lib_version"], c.lib, c.version)
			}
		})
	}
}

package event_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
)

func TestDecodeEvent(t *testing.T) {
	long := strings.Repeat("é", 201)
	cases := []struct {
		name                   string
		items                  string
		event, id, props, said string
	}{
		{"distinct id beside the event",
			`{"event":"paid","distinct_id":"u1","properties":{"amount":9.50}}`, "paid", "u1", `{"amount":9.50}`, ""},
		{"distinct id inside the properties, which stay byte for byte",
			`{"event":"paid","properties":{ "distinct_id" : "u1", "n":1e2 }}`, "paid", "u1", `{ "distinct_id" : "u1", "n":1e2 }`, ""},
		{"beside goes before inside",
			`{"event":"a","distinct_id":"top","properties":{"distinct_id":"in"}}`, "a", "top", `{"distinct_id":"in"}`, ""},
		{"a blank one beside does not hide the one inside",
			`{"event":"a","distinct_id":" ","properties":{"distinct_id":"in"}}`, "a", "in", `{"distinct_id":"in"}`, ""},
		{"$distinct_id of old clients", `{"event":"a","$distinct_id":"u1"}`, "a", "u1", `{}`, ""},
		{"a number is its digits", `{"event":"a","distinct_id":23}`, "a", "23", `{}`, ""},
		{"zero and false are ids too", `{"event":"a","distinct_id":0}`, "a", "0", `{}`, ""},
		{"a list is its compact text", `{"event":"a","distinct_id":[ "a", "b" ]}`, "a", `["a","b"]`, `{}`, ""},
		{"an object is its compact text with sorted names", `{"event":"a","distinct_id":{"b":1.0,"a":"<"}}`, "a", `{"a":"<","b":1.0}`, `{}`, ""},
		{"201 characters become 200", `{"event":"a","distinct_id":"` + long + `"}`, "a", long[:400], `{}`, event.KindDistinctIDTooLong},
		{"a name of 201 characters becomes 200", `{"event":"` + long + `","distinct_id":"u"}`, long[:400], "u", `{}`, event.KindNameTooLong},
		{"a name that is not text is its JSON", `{"event":{"b":1,"a":2},"distinct_id":"u"}`, `{"a":2,"b":1}`, "u", `{}`, ""},
		{"NUL becomes U+FFFD", `{"event":"a\u0000","distinct_id":"u\u0000","properties":{"k\u0000":"\u0000"}}`, "a\ufffd", "u\ufffd", "{\"k\ufffd\":\"\ufffd\"}", ""},
		{"half a surrogate pair becomes the text of its escape",
			`{"event":"a","distinct_id":"u\ud83d","properties":{"a":"\ud83dx","b":"\ud83d\udcbb"}}`, "a", `u\ud83d`, `{"a":"\\ud83dx","b":"\ud83d\udcbb"}`, ""},
		{"bytes that are not UTF-8 become U+FFFD", "{\"event\":\"a\",\"distinct_id\":\"u\xff\",\"properties\":{\"a\":\"\xffé\"}}", "a", "u\ufffd", "{\"a\":\"\ufffdé\"}", ""},
		{"CESU-8 of old browsers becomes UTF-8", "{\"event\":\"a\",\"distinct_id\":\"\xed\xa0\xbd\xed\xb2\xbb\",\"properties\":{\"a\":\"\xed\xa0\xbd\xed\xb2\xbb\xed\xb2\xbb\"}}", "a", "💻", `{"a":"💻\\udcbb"}`, ""},
		{"bare control characters are escaped", "{\"event\":\"a\",\"distinct_id\":\"u\x00\",\"properties\":{\"a\":\"\n\x00\"}}", "a", "u\ufffd", "{\"a\":\"\\u000a\ufffd\"}", ""},
		{"an emoji stays", `{"event":"💻","distinct_id":"💻","properties":{"💻":"💻"}}`, "💻", "💻", `{"💻":"💻"}`, ""},
		{"NaN and the infinities are read as null",
			`{"event":"a","distinct_id":"u","properties":{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN"}}`, "a", "u", `{"a":null,"b":[null,null],"c":"NaN"}`, ""},
		{"line breaks between values go, an event fits on a line",
			"{\"event\":\"a\",\"distinct_id\":\"u\",\"properties\":{\n  \"a\": 1,\r\n\t\"b c\": [ ]\n}}", "a", "u", `{"a":1,"b c":[]}`, ""},
		{"no properties are an empty object", `{"event":"a","distinct_id":"u","properties":null}`, "a", "u", `{}`, ""},
		{"of a name that comes twice the last value counts",
			`{"event":"x","event":"a","distinct_id":"x","distinct_id":"u","properties":{"x":1},"properties":{"k":1,"j":2,"k":3}}`, "a", "u", `{"j":2,"k":3}`, ""},
		{"an escaped name is the same name", `{"\u0065vent":"a","distinct_id":"u","properties":{"k":1,"\u006b":2}}`, "a", "u", `{"\u006b":2}`, ""},
		{"$set beside the event is merged over the one inside",
			`{"event":"$identify","distinct_id":"u","$set":{"a":1,"b":2},"properties":{"$set":{"b":9,"c":3},"x":1}}`,
			"$identify", "u", `{"$set":{"c":3,"a":1,"b":2},"x":1}`, ""},
		{"$set_once and $unset beside the event count too",
			`{"event":"$set","distinct_id":"u","$set_once":{"a":1},"$unset":["t"]}`, "$set", "u", `{"$set_once":{"a":1},"$unset":["t"]}`, ""},
		{"$set that is no object is ignored, with a notice",
			`{"event":"a","distinct_id":"u","$set":"x"}`, "a", "u", `{}`, event.KindInvalidSet},
		{"without person processing no person update is kept",
			`{"event":"view","distinct_id":"u9","$set":{"b":1},"properties":{"$process_person_profile":false,"$set":{"a":1},"k":1}}`,
			"view", "u9", `{"$process_person_profile":false,"k":1}`, ""},
		{"a switch that is no boolean is taken for true",
			`{"event":"a","distinct_id":"u","properties":{"$process_person_profile":"no"}}`, "a", "u", `{"$process_person_profile":"no"}`, event.KindInvalidPersonSwitch},
		{"the elements chain has its own place",
			`{"event":"$autocapture","distinct_id":"u","properties":{"$elements_chain":"a:text=\"x\"","k":1}}`, "$autocapture", "u", `{"k":1}`, ""},
		{"a group event updates no person",
			`{"event":"$groupidentify","distinct_id":"u","properties":{"$set":{"a":1},"$group_type":"c","$group_key":"k","$group_set":{"n":1}}}`,
			"$groupidentify", "u", `{"$group_type":"c","$group_key":"k","$group_set":{"n":1}}`, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := ingestiontest.Decode(ingestiontest.Record(c.items))
			if len(got.Events) != 1 {
				t.Fatalf("%d events, notices: %s", len(got.Events), ingestiontest.Kinds(got))
			}
			e := got.Events[0]
			if e.Name != c.event || e.DistinctID != c.id || string(e.Properties) != c.props {
				t.Errorf("got  %q %q %s\nwant %q %q %s", e.Name, e.DistinctID, e.Properties, c.event, c.id, c.props)
			}
			if ingestiontest.Kinds(got) != c.said {
				t.Errorf("notices %q, want %q", ingestiontest.Kinds(got), c.said)
			}
		})
	}
}

func TestDecodeDrops(t *testing.T) {
	cases := []struct{ name, items, want string }{
		{"no name", `{"distinct_id":"u"}`, event.KindMissingName},
		{"an empty name", `{"event":"","distinct_id":"u"}`, event.KindMissingName},
		{"no distinct id", `{"event":"a"}`, event.KindInvalidDistinctID},
		{"an empty distinct id", `{"event":"a","distinct_id":""}`, event.KindInvalidDistinctID},
		{"a distinct id of white space", `{"event":"a","distinct_id":" \t\u00a0"}`, event.KindInvalidDistinctID},
		{"a null distinct id", `{"event":"a","distinct_id":null}`, event.KindInvalidDistinctID},
		{"properties that are no object", `{"event":"a","distinct_id":"u","properties":[1]}`, event.KindInvalidProperties},
		{"null in a list", `[null]`, event.KindEmptyEvent},
		{"an empty object in a list", `[{}]`, event.KindEmptyEvent},
		{"text in a list", `["a"]`, event.KindNotAnObject},
		{"an event over 1 MB", `{"event":"a","distinct_id":"u","properties":{"k":"` + strings.Repeat("x", 1<<20) + `"}}`, event.KindTooLarge},
		{"an event nested too deep", `{"event":"a","distinct_id":"u","properties":{"k":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`, event.KindTooDeep},
		{"an event of too many properties", `{"event":"a","distinct_id":"u","properties":` + manyProperties(10_001) + `}`, event.KindTooManyProperties},
		{"identify without person processing", `{"event":"$identify","distinct_id":"u","properties":{"$process_person_profile":false}}`, event.KindPersonlessIdentify},
		{"a group event without person processing", `{"event":"$groupidentify","distinct_id":"u","properties":{"$process_person_profile":false}}`, event.KindPersonlessIdentify},
		{"a group key over 400 characters", `{"event":"$groupidentify","distinct_id":"u","properties":{"$group_type":"c","$group_key":"` + strings.Repeat("é", 401) + `"}}`, event.KindGroupKeyTooLong},
		{"a $group_set that is no object", `{"event":"$groupidentify","distinct_id":"u","properties":{"$group_type":"c","$group_key":"k","$group_set":"x"}}`, event.KindInvalidGroupSet},
		{"what a client says about itself", `{"event":"$$client_ingestion_warning","distinct_id":"u","properties":{"$$client_ingestion_warning_message":"slow down"}}`, event.KindClientWarning},
		{"performance events", `{"event":"$performance_event","distinct_id":"u"}`, event.KindPerformanceEvent},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := ingestiontest.Decode(ingestiontest.Record(c.items))
			if len(got.Events) != 0 || ingestiontest.Kinds(got) != "-"+c.want {
				t.Errorf("%d events, notices %q; want none and -%s", len(got.Events), ingestiontest.Kinds(got), c.want)
			}
		})
	}
}

func manyProperties(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":1`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestDecodeBatch(t *testing.T) {
	t.Run("one bad event does not touch the others", func(t *testing.T) {
		got := ingestiontest.Decode(ingestiontest.Record(`[{"event":"a","distinct_id":"u"},{"event":"b"},null,{"event":"c","distinct_id":"u"}]`))
		if len(got.Events) != 2 || got.Events[0].Name != "a" || got.Events[1].Name != "c" {
			t.Fatalf("events %+v", got.Events)
		}
		if fmt.Sprint(got.Index) != "[0 3]" || got.Items != 4 {
			t.Errorf("index %v of %d items, want [0 3] of 4", got.Index, got.Items)
		}
		if n := got.Notices[0]; n.Index != 1 || n.EventName != "b" || n.Kind != event.KindInvalidDistinctID {
			t.Errorf("first notice %+v", n)
		}
	})
	t.Run("an event without a name gets the one of its path", func(t *testing.T) {
		rec := ingestiontest.Record(`{"$token":"phc_x","$distinct_id":"u1","$set":{"plan":"pro"}}`)
		rec.DefaultName = "$identify"
		got := ingestiontest.Decode(rec)
		if len(got.Events) != 1 || got.Events[0].Name != "$identify" || string(got.Events[0].Properties) != `{"$set":{"plan":"pro"}}` {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("memory of the decoder is not shared between events", func(t *testing.T) {
		rec := ingestiontest.Record(`[{"event":"a","distinct_id":"u","properties":{"n":1}},{"event":"b","distinct_id":"v","properties":{"n":2}}]`)
		rec.ClientIP = netip.MustParseAddr("10.0.0.1")
		got := ingestiontest.Decode(rec)
		first := string(got.Events[0].Properties)
		_ = append(got.Events[0].Properties, "garbage"...)
		if string(got.Events[1].Properties) != `{"$ip":"10.0.0.1","n":2}` || first != `{"$ip":"10.0.0.1","n":1}` {
			t.Errorf("got %s and %s", first, got.Events[1].Properties)
		}
	})
}

func TestDecodeAddress(t *testing.T) {
	cases := []struct {
		name, props, want string
		anonymise         bool
	}{
		{"is filled in", `{"a":1}`, `{"$ip":"192.0.2.7","a":1}`, false},
		{"is filled in without properties", `{}`, `{"$ip":"192.0.2.7"}`, false},
		{"of the client wins", `{"$ip":"198.51.100.1"}`, `{"$ip":"198.51.100.1"}`, false},
		{"null of the client wins as well", `{"$ip":null}`, `{"$ip":null}`, false},
		{"of a client inside is local", `{"capture_internal":true}`, `{"$ip":"127.0.0.1","capture_internal":true}`, false},
		{"is not kept for a project that keeps none", `{"$ip":"198.51.100.1","a":1}`, `{"a":1}`, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rec := ingestiontest.Record(`{"event":"a","distinct_id":"u","properties":` + c.props + `}`)
			rec.ClientIP, rec.Anonymise = netip.MustParseAddr("192.0.2.7"), c.anonymise
			if got := string(ingestiontest.Decode(rec).Events[0].Properties); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestDecodeUUID(t *testing.T) {
	const known = "0190a5a2-7b3c-7000-8000-0000000000ff"
	cases := []struct {
		name, uuid, want, said string
	}{
		{"of the client is kept", `"` + known + `"`, known, ""},
		{"is lower case", `"` + strings.ToUpper(known) + `"`, known, ""},
		{"without dashes", `"` + strings.ReplaceAll(known, "-", "") + `"`, known, ""},
		{"empty is none", `""`, "", ""},
		{"null is none", `null`, "", ""},
		{"nil is none, clients send it for every event", `"00000000-0000-0000-0000-000000000000"`, "", ""},
		{"invalid is replaced, the event is kept", `"order-17"`, "", event.KindInvalidUUID},
		{"a number is replaced", `12345678901234567890123456789012`, "", event.KindInvalidUUID},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := ingestiontest.Decode(ingestiontest.Record(`[{"event":"a","distinct_id":"u","uuid":` + c.uuid + `}]`))
			again := ingestiontest.Decode(ingestiontest.Record(`[{"event":"a","distinct_id":"u","uuid":` + c.uuid + `}]`))
			id := got.Events[0].UUID
			switch {
			case c.want != "" && id != c.want:
				t.Errorf("got %s, want %s", id, c.want)
			case c.want == "" && (len(id) != 36 || id[14] != '7' || !strings.HasPrefix(id, "018f3398-c100-7")):
				t.Errorf("%s is not a version 7 uuid of the time of arrival", id)
			case id != again.Events[0].UUID:
				t.Errorf("decoding again gives %s, then %s", id, again.Events[0].UUID)
			}
			if ingestiontest.Kinds(got) != c.said {
				t.Errorf("notices %q, want %q", ingestiontest.Kinds(got), c.said)
			}
		})
	}
	t.Run("made ones differ and sort as the events were sent", func(t *testing.T) {
		items := "[" + strings.Repeat(`{"event":"a","distinct_id":"u"},`, 3000) + `{"event":"a","distinct_id":"u"}]`
		last := ""
		for _, e := range ingestiontest.Decode(ingestiontest.Record(items)).Events {
			if e.UUID <= last {
				t.Fatalf("%s after %s", e.UUID, last)
			}
			last = e.UUID
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`[{"event":"a","distinct_id":"u","properties":{"a":"\u0000\ud83d","$set":{"x":1}},"$set":{"y":NaN},"timestamp":"2024","offset":5}]`), "10.0.0.1", "2024-05-01", byte(0))
	f.Add([]byte("{\"event\":5,\"distinct_id\":{\"b\":[1]},\"properties\":{\n\"a\":\"\xff\",\"a\":2}}"), "", "x", byte(7))
	f.Add([]byte(`[1,null,{"uuid":"x","$unset":["a"],"event":"$groupidentify","properties":{"distinct_id":-Infinity}}]`), "\xff", "", byte(2))
	f.Fuzz(func(t *testing.T, items []byte, ip, sentAt string, flags byte) {
		addr, _ := netip.ParseAddr(ip)
		rec := event.Record{ReceivedAt: ingestiontest.Arrival, ProjectID: 1, ClientIP: addr.WithZone(""), SentAt: sentAt, Items: items,
			Historical: flags&1 != 0, Anonymise: flags&2 != 0, Verbatim: flags&4 != 0}
		parsed, err := event.ParseRecord(rec.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		got, again := ingestiontest.Decode(parsed), ingestiontest.Decode(parsed)
		for i, e := range got.Events {
			checkEvent(t, e.Name, e.DistinctID, e.Properties)
			line := e.AppendJSON(nil)
			if !json.Valid(line) || !utf8.Valid(line) || bytes.ContainsAny(line, "\n\r\x00") {
				t.Fatalf("not one line of JSON: %q", line)
			}
			if !bytes.Equal(line, again.Events[i].AppendJSON(nil)) {
				t.Fatalf("decoding twice differs: %s", line)
			}
		}
	})
}

func checkEvent(t *testing.T, name, id string, props json.RawMessage) {
	t.Helper()
	if name == "" || id == "" || utf8.RuneCountInString(name) > 200 || utf8.RuneCountInString(id) > 200 {
		t.Fatalf("event %q of %q", name, id)
	}
	if !utf8.ValidString(name) || !utf8.ValidString(id) || strings.ContainsRune(name+id, 0) {
		t.Fatalf("event %q of %q", name, id)
	}
	if len(props) == 0 || props[0] != '{' || !json.Valid(props) || bytes.Contains(props, []byte(`\u0000`)) && !bytes.Contains(props, []byte(`\\u0000`)) {
		t.Fatalf("properties %q", props)
	}
}

// Visitors without cookies have one distinct id: a project learns from a warning
// that its counts of visitors are too low.
func TestCookielessVisitorsAreReported(t *testing.T) {
	got := ingestiontest.Decode(event.Record{ReceivedAt: ingestiontest.Arrival, ProjectID: 1,
		Items: []byte(`{"event":"$pageview","distinct_id":"$posthog_cookieless","properties":{"$cookieless_mode":true}}`)})
	if len(got.Events) != 1 || len(got.Notices) != 1 || got.Notices[0].Kind != event.KindCookieless || got.Notices[0].Dropped {
		t.Errorf("%+v", got)
	}
}

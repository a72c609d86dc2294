package sdk_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

func sample() sdk.Event {
	return sdk.Event{
		UUID: "0190a5a2-7b3c-7000-8000-000000000001", ProjectID: 7, Name: "paid \"now\"\n", DistinctID: "ü💻\\\x01",
		Timestamp:  time.Date(2024, 5, 1, 12, 0, 0, 120_000_000, time.FixedZone("", 7200)),
		ReceivedAt: time.Date(2024, 5, 1, 10, 0, 1, 0, time.UTC),
		Properties: json.RawMessage(`{"amount":9.50,"big":12345678901234567890}`),
	}
}

func TestEventJSON(t *testing.T) {
	full := sample()
	full.ElementsChain, full.PersonID = `a:text="x"`, "6931a681-6e90-500d-8294-14582dcc2e3f"
	bare := sample()
	bare.Properties = nil
	cases := []struct {
		name, want string
		event      sdk.Event
	}{
		{"times are UTC with six decimals and numbers keep their digits",
			`{"uuid":"0190a5a2-7b3c-7000-8000-000000000001","project_id":7,"event":"paid \"now\"\n","distinct_id":"ü💻\\\u0001",` +
				`"timestamp":"2024-05-01T10:00:00.120000Z","received_at":"2024-05-01T10:00:01.000000Z",` +
				`"properties":{"amount":9.50,"big":12345678901234567890}}`, sample()},
		{"elements and person are there when known",
			`{"uuid":"0190a5a2-7b3c-7000-8000-000000000001","project_id":7,"event":"paid \"now\"\n","distinct_id":"ü💻\\\u0001",` +
				`"timestamp":"2024-05-01T10:00:00.120000Z","received_at":"2024-05-01T10:00:01.000000Z",` +
				`"properties":{"amount":9.50,"big":12345678901234567890},` +
				`"elements_chain":"a:text=\"x\"","person_id":"6931a681-6e90-500d-8294-14582dcc2e3f"}`, full},
		{"properties are never null",
			`{"uuid":"0190a5a2-7b3c-7000-8000-000000000001","project_id":7,"event":"paid \"now\"\n","distinct_id":"ü💻\\\u0001",` +
				`"timestamp":"2024-05-01T10:00:00.120000Z","received_at":"2024-05-01T10:00:01.000000Z","properties":{}}`, bare},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := string(c.event.AppendJSON(nil)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestEventJSONReadsBack(t *testing.T) {
	want := sample()
	want.Timestamp = want.Timestamp.UTC()
	var got sdk.Event
	if err := json.Unmarshal(want.AppendJSON(nil), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func FuzzEventJSON(f *testing.F) {
	f.Add("name", "id")
	f.Add("\"\\\x00\x1f", "\xff\u2028é")
	f.Fuzz(func(t *testing.T, name, id string) {
		e := sample()
		e.Name, e.DistinctID = name, id
		var got sdk.Event
		if err := json.Unmarshal(e.AppendJSON(nil), &got); err != nil {
			t.Fatal(err)
		}
		wantName, wantID := []rune(name), []rune(id)
		if got.Name != string(wantName) || got.DistinctID != string(wantID) {
			t.Errorf("got %q and %q, want %q and %q", got.Name, got.DistinctID, string(wantName), string(wantID))
		}
	})
}

func BenchmarkEventAppendJSON(b *testing.B) {
	e := sample()
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = e.AppendJSON(buf[:0])
	}
}

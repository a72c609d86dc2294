package event_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
)

type timeVector struct {
	ID           string
	Timestamp    any
	SentAt       *string `json:"sent_at"`
	Offset       any
	IgnoreSentAt bool `json:"ignore_sent_at"`
	Now          time.Time
	Expected     string
	Warnings     []string
}

func TestTimestampVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/timestamps.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []timeVector }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) < 44 {
		t.Fatalf("only %d vectors", len(file.Vectors))
	}
	for _, v := range file.Vectors {
		t.Run(v.ID, func(t *testing.T) { v.check(t) })
	}
}

func (v timeVector) check(t *testing.T) {
	item := map[string]any{"event": "a", "distinct_id": "u", "timestamp": v.Timestamp, "offset": v.Offset,
		"properties": map[string]any{"$ignore_sent_at": v.IgnoreSentAt}}
	items, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	rec := event.Record{ReceivedAt: v.Now, ProjectID: 1, Items: items}
	if v.SentAt != nil {
		rec.SentAt = *v.SentAt
	}
	got := ingestiontest.Decode(rec)
	if at := got.Events[0].Timestamp.Format("2006-01-02T15:04:05.000000Z07:00"); at != v.Expected {
		t.Errorf("got %s, want %s", at, v.Expected)
	}
	var kinds []string
	for _, n := range got.Notices {
		kinds = append(kinds, n.Kind)
	}
	if len(kinds) != len(v.Warnings) || (len(kinds) == 1 && kinds[0] != v.Warnings[0]) {
		t.Errorf("notices %v, want %v", kinds, v.Warnings)
	}
}

func TestTimestampForms(t *testing.T) {
	cases := []struct{ sent, want string }{
		{`"2024-05-01T09:00:00.1234567Z"`, "2024-05-01T09:00:00.123456Z"},
		{`"2024-05-01t09:00z"`, "2024-05-01T09:00:00.000000Z"},
		{`"2024-05-01 09:00:00 UTC"`, "2024-05-01T09:00:00.000000Z"},
		{`"2024-05-01 09:00:00 +0200"`, "2024-05-01T07:00:00.000000Z"},
		{`"2024-05-01T09:00:60Z"`, "2024-05-01T09:01:00.000000Z"},
		{`"2024-W01-1"`, "2024-01-01T00:00:00.000000Z"},
		{`"2023-365"`, "2023-12-31T00:00:00.000000Z"},
		{`1714550400`, "2024-05-01T08:00:00.000000Z"},
		{`1714550400123`, "2024-05-01T08:00:00.123000Z"},
		{`"2023-366"`, "2024-05-01T10:00:00.000000Z"},
		{`"2023-02-30"`, "2024-05-01T10:00:00.000000Z"},
		{`"2024-05-01T25:00:00Z"`, "2024-05-01T10:00:00.000000Z"},
		{`"2024-05-01T09:00:00+"`, "2024-05-01T10:00:00.000000Z"},
		{`"+012024-05-01T09:00:00Z"`, "2024-05-01T10:00:00.000000Z"},
		{`{"a":1}`, "2024-05-01T10:00:00.000000Z"},
		{`true`, "2024-05-01T10:00:00.000000Z"},
		{`5`, "2024-05-01T10:00:00.000000Z"},
	}
	for _, c := range cases {
		t.Run(c.sent, func(t *testing.T) {
			got := ingestiontest.Decode(ingestiontest.Record(`{"event":"a","distinct_id":"u","timestamp":` + c.sent + `}`))
			if at := got.Events[0].Timestamp.Format("2006-01-02T15:04:05.000000Z07:00"); at != c.want {
				t.Errorf("got %s, want %s", at, c.want)
			}
			if unused := c.want == "2024-05-01T10:00:00.000000Z"; unused != (len(got.Notices) == 1) {
				t.Errorf("notices %q", ingestiontest.Kinds(got))
			}
		})
	}
}

// The timestamps of an import are exact: the clock of the sender does not move
// them, also when it is wrong.
func TestImportsAreNotMovedByTheClockOfTheSender(t *testing.T) {
	now := ingestiontest.Arrival
	for name, sentAt := range map[string]time.Time{"a fast clock": now.Add(90 * time.Second), "a slow line": now.Add(-time.Hour)} {
		t.Run(name, func(t *testing.T) {
			rec := event.Record{ReceivedAt: now, ProjectID: 1, Historical: true, SentAt: sentAt.Format(time.RFC3339Nano),
				Items: []byte(`{"event":"h","distinct_id":"u","timestamp":"2023-03-01T00:00:00Z"}`)}
			if got := ingestiontest.Decode(rec).Events[0].Timestamp; !got.Equal(time.Date(2023, 3, 1, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("the timestamp became %v", got)
			}
		})
	}
}

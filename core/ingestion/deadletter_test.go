package ingestion_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

const letterUUID = "0192f0aa-0000-7000-8000-%012d"

// put writes a dead letter of project 1 and returns its id.
func put(t *testing.T, d *db.DB, n int, source, name, code string, failedAt time.Time) int64 {
	t.Helper()
	id := fmt.Sprintf(letterUUID, n)
	ev := sdk.Event{
		UUID: id, ProjectID: 1, Name: name, DistinctID: "u", Timestamp: ingestiontest.Arrival, ReceivedAt: ingestiontest.Arrival, Properties: []byte(`{"plan":"Gold 100%"}`),
	}
	var row int64
	err := d.Write(t.Context()).NewRaw(`INSERT INTO dead_letters (project_id, source, event_uuid, event, distinct_id, received_at, created_at,
		failed_at, attempts, class, code, message, seq, payload) VALUES (1, ?, ?, ?, 'u', ?, ?, ?, 1, 'permanent', ?, 'no', ?, ?) RETURNING id`,
		source, id, name, ingestiontest.Arrival.UnixMicro(), failedAt.UnixMicro(), failedAt.UnixMicro(), code, n, string(ev.AppendJSON(nil))).Scan(t.Context(), &row)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func TestDeadLettersAreFound(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		put(t, d, 1, "worker", "paid", "bad_value", ingestiontest.Arrival)
		put(t, d, 2, "sink/one", "paid", "Constraint_9", ingestiontest.Arrival.Add(time.Hour))
		put(t, d, 3, "sink/two", "seen", "bad_value", ingestiontest.Arrival.Add(2*time.Hour))
		base := webtest.Serve(t, keys(), deadletter.NewHTTP(deadletter.NewService(d, event.DefaultLimits(), nil)))
		path := base + "/api/projects/1/dead_letters/"
		after := ingestiontest.Arrival.Add(30 * time.Minute).Format(time.RFC3339)
		for query, want := range map[string]string{
			"":                              "3 2 1",
			"?sink=one":                     "2",
			"?source=worker":                "1",
			"?code=bad_value":               "3 1",
			"?event=paid":                   "2 1",
			"?distinct_id=u":                "3 2 1",
			"?after=" + after:               "3 2",
			"?before=" + after:              "1",
			"?search=gold+100%25":           "3 2 1",
			"?search=gold_100":              "",
			"?search=CONSTRAINT_9":          "2",
			"?search=%25":                   "3 2 1",
			"?search=!":                     "",
			"?event=paid&search=constraint": "2",
			"?event_uuid=" + fmt.Sprintf(letterUUID, 3): "3",
		} {
			_, list := listOf(t, path+query)
			var got []string
			for _, l := range list {
				got = append(got, fmt.Sprint(l["seq"]))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %v, want %s", query, got, want)
			}
		}
	})
}

func TestDeadLettersAreDeletedByFilter(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		for n := range 4 {
			put(t, d, n+1, fmt.Sprint("sink/", n%2), "e", "c", ingestiontest.Arrival)
		}
		base := webtest.Serve(t, keys(), deadletter.NewHTTP(deadletter.NewService(d, event.DefaultLimits(), nil)))
		path := base + "/api/projects/1/dead_letters/"
		for body, status := range map[string]int{`{}`: 400, `{"evnet":"e"}`: 400, `{"ids":[]}`: 400, `{"after":"x"}`: 400, `{"ids":["x"]}`: 400} {
			ask(t, "POST", path+"delete/", body, status)
		}
		ask(t, "POST", path+"replay/", `{"sorce":"worker"}`, 400)
		if got := ask(t, "POST", path+"delete/", `{"sink":"1","dry_run":true}`, 200); got["matched"] != 2.0 || got["deleted"] != 0.0 || len(got["sample"].([]any)) != 2 {
			t.Errorf("dry run: %v", got)
		}
		if got := ask(t, "POST", path+"delete/", `{"sink":"1"}`, 200); got["deleted"] != 2.0 {
			t.Errorf("one sink's: %v", got)
		}
		if got := ask(t, "POST", path+"delete/", `{"all":true}`, 200); got["deleted"] != 2.0 || letters(t, d) != "" {
			t.Errorf("all: %v, left %q", got, letters(t, d))
		}
	})
}

func TestDeadLettersExpire(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		for n := range 1203 {
			put(t, d, n+1, "worker", "old", "c", ingestiontest.Arrival)
		}
		kept := put(t, d, 5000, "worker", "waits", "c", ingestiontest.Arrival)
		put(t, d, 5001, "worker", "new", "c", ingestiontest.Arrival.Add(time.Hour))
		l := deadletter.NewService(d, event.DefaultLimits(), nil)
		if _, err := l.Replay(t.Context(), 1, deadletter.Filter{IDs: []int64{kept}}, false, 0); err != nil {
			t.Fatal(err)
		}
		if err := l.Expire(t.Context(), ingestiontest.Arrival.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got := letters(t, d); got != "waits new" {
			t.Errorf("left %.80q", got)
		}
	})
}

func TestDeadLettersAreEditedStrictly(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	l := deadletter.NewService(d, event.Limits{MaxEventBytes: 2000, MaxDepth: 4, MaxProperties: 3}, nil)
	const whole = `{"uuid":"%s","project_id":1,"event":"e","distinct_id":"u","timestamp":"2024-05-01T10:00:00.000000Z","received_at":"2024-05-01T10:00:00.000000Z","properties":%s%s}`
	for n, tc := range []struct{ name, patch, want string }{
		{"nothing", `{}`, `"properties":{"plan":"Gold 100%"}}`},
		{"the name", `{"event":"paid"}`, `"event":"paid"`},
		{"the person", `{"distinct_id":"ada"}`, `"distinct_id":"ada"`},
		{"the time, in another zone", `{"timestamp":"2024-05-01T12:00:00.5+02:00"}`, `"timestamp":"2024-05-01T10:00:00.500000Z"`},
		{"properties, numbers with their digits", "{\"properties\":{\"a\":1.50,\n \"b\":12345678901234567890}}", `"properties":{"a":1.50,"b":12345678901234567890}`},
		{"the elements", `{"elements_chain":"a"}`, `"elements_chain":"a"`},
		{"the whole event, sent back", "whole", `"properties":{}`},
		{"another uuid", `{"uuid":"0192f0aa-0000-7000-8000-0000000000ff"}`, "uuid immutable"},
		{"no uuid", `{"uuid":null}`, "uuid immutable"},
		{"another project", `{"project_id":2}`, "project_id immutable"},
		{"another arrival", `{"received_at":"2024-05-01T10:00:01Z"}`, "received_at immutable"},
		{"a person id of one's own", `{"person_id":"0192f0aa-0000-7000-8000-0000000000ff"}`, "person_id immutable"},
		{"a field that no event has", `{"evnet":"x"}`, "evnet unknown_field"},
		{"an empty name", `{"event":""}`, "event blank"},
		{"a blank person", `{"distinct_id":"  "}`, "distinct_id blank"},
		{"a number for a name", `{"event":7}`, "event invalid_input"},
		{"null for a name", `{"event":null}`, "event invalid_input"},
		{"NUL in a name", `{"event":"a\u0000"}`, "event invalid_input"},
		{"half a character", `{"event":"a\ud83d"}`, "event invalid_input"},
		{"a long name", `{"event":"` + strings.Repeat("é", 201) + `"}`, "event max_length"},
		{"a name just long enough", `{"event":"` + strings.Repeat("é", 200) + `"}`, `éé"`},
		{"no time", `{"timestamp":"soon"}`, "timestamp invalid_input"},
		{"a list of properties", `{"properties":[]}`, "properties not_a_dict"},
		{"no properties", `{"properties":null}`, "properties not_a_dict"},
		{"a property twice", `{"properties":{"a":1,"a":2}}`, "properties invalid_input"},
		{"too many properties", `{"properties":{"a":1,"b":2,"c":3,"d":4}}`, "properties too_many_properties"},
		{"too deep", `{"properties":{"a":{"b":{"c":{}}}}}`, "properties too_deep"},
		{"just deep enough", `{"properties":{"a":{"b":{}}}}`, `{"a":{"b":{}}}`},
		{"too large", `{"properties":{"a":"` + strings.Repeat("x", 2000) + `"}}`, " event_too_large"},
		{"no object", `[]`, " parse_error"},
		{"no JSON", `{"event":"x"`, " parse_error"},
		{"more than one value", `{} {}`, " parse_error"},
		{"not a number", `{"properties":{"a":NaN}}`, " parse_error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := put(t, d, n+1, "worker", "e", "c", ingestiontest.Arrival)
			if tc.patch == "whole" {
				tc.patch = fmt.Sprintf(whole, fmt.Sprintf(letterUUID, n+1), "{}", "")
			}
			before, err := l.Get(t.Context(), 1, id)
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.Edit(t.Context(), 1, id, []byte(tc.patch))
			after, _ := l.Get(t.Context(), 1, id)
			if e := fault.From(err); e != nil {
				if text := e.Attr + " " + e.Code; text != tc.want {
					t.Errorf("refused with %q, want %q", text, tc.want)
				}
				if string(after.Payload) != string(before.Payload) {
					t.Errorf("refused, and changed to %s", after.Payload)
				}
				return
			}
			if err != nil || !strings.Contains(string(got.Payload), tc.want) || string(after.Payload) != string(got.Payload) {
				t.Errorf("%s, %v, want %s in it", got.Payload, err, tc.want)
			}
		})
	}
}

// A dead letter without an event can be neither edited nor replayed.
func TestDeadLettersWithoutAnEvent(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	id := put(t, d, 1, "worker", "e", "unreadable_record", ingestiontest.Arrival)
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), `UPDATE dead_letters SET payload = '{"journal":"j","seq":1,"data":"AA=="}'`); err != nil {
		t.Fatal(err)
	}
	st := &stage{db: d}
	l := startReplayer(t, d, startWorker(t, workerConfig(), j, d, nil, st), startDeliver(t, deliverConfig(), j, d, newSinks()))
	if _, err := l.Edit(t.Context(), 1, id, []byte(`{"event":"x"}`)); !fault.Is(err, fault.Conflict) {
		t.Errorf("edit: %v", err)
	}
	if got := replayAll(t, l, time.Minute); got.Failed != 1 || !strings.Contains(got.Failures[0].Error, "not_an_event") || st.seen() != "" {
		t.Errorf("%+v, %q", got, st.seen())
	}
}

// through is a stage and a deduplicator that knows the events whose uuid ends in 1.
type through struct{ *stage }

func (s through) Known(_ context.Context, batch []*sdk.Event) ([]bool, error) {
	known := make([]bool, len(batch))
	for i := range batch {
		known[i] = strings.HasSuffix(batch[i].UUID, "1")
	}
	return known, nil
}

// A replayed event passes the stages once: for one that is stored only the dead
// letter is deleted, and a failure changes neither.
func TestReplayPassesTheStagesOnce(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j, st := openJournal(t, t.TempDir()), &stage{db: d}
		st.fail = func(batch []*sdk.Event) error {
			if batch[0].Name == "bad" {
				return errors.New("still bad")
			}
			return nil
		}
		w := startWorker(t, workerConfig(), j, d, through{st}, st)
		l := startReplayer(t, d, w, startDeliver(t, deliverConfig(), j, d, newSinks()))
		put(t, d, 1, "worker", "known", "c", ingestiontest.Arrival)
		put(t, d, 2, "worker", "bad", "c", ingestiontest.Arrival)
		put(t, d, 3, "worker", "fine", "c", ingestiontest.Arrival)
		got := replayAll(t, l, time.Minute)
		eventually(t, "an event through the stages", func() bool { return st.seen() != "" }) // known behind the commit
		if got.Replayed != 2 || got.Failed != 1 || st.seen() != "fine" || letters(t, d) != "bad" {
			t.Errorf("%+v, went through: %q, left: %q", got, st.seen(), letters(t, d))
		}
		list, _, _ := l.List(t.Context(), 1, deadletter.Filter{}, 1, 0)
		if list[0].Attempts != 2 || list[0].Message != "stage test: still bad" || list[0].Class != "permanent" {
			t.Errorf("left: %+v", list[0])
		}
	})
}

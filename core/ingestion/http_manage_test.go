package ingestion_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/ingestion/deadletter"
	"github.com/guidonhq/guidon/core/ingestion/warning"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

// listOf reads a list and its count.
func listOf(t *testing.T, address string) (count int, results []map[string]any) {
	t.Helper()
	got := send(t, "GET", address, "", "", "Authorization", "Bearer phx_test")
	var body struct {
		Count   int
		Results []map[string]any
	}
	if err := json.Unmarshal([]byte(got.body), &body); got.status != 200 || err != nil {
		t.Fatalf("%d %s", got.status, got.body)
	}
	return body.Count, body.Results
}

func TestWarningsAreSampledAndListed(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		s := &stage{db: d}
		s.fail = func([]*sdk.Event) error { return nil }
		accept(t, j, `{"event":"a"}`, `{"event":"a"}`, `{"event":"b"}`, `{"event":"c","distinct_id":"u","timestamp":"soon"}`,
			`{"event":"$performance_event","distinct_id":"u"}`)
		accept(t, j, `{"event":"a"}`, "end")
		startWorker(t, workerConfig(), j, d, nil, s, warner{})
		eventually(t, "the last event", func() bool { return s.seen() == "c end" })
		base := webtest.Serve(t, keys(), warning.NewHTTP(d))
		count, list := listOf(t, base+"/api/projects/1/ingestion_warnings/")
		if count != 4 || len(list) != 4 {
			t.Fatalf("%d: %v", count, list)
		}
		got := map[string]string{}
		for _, w := range list {
			got[fmt.Sprint(w["type"], " ", w["key"])] = fmt.Sprint(w["severity"], " ", w["count"], " ", w["details"].(map[string]any)["eventName"])
		}
		for key, want := range map[string]string{
			"skipping_event_invalid_distinct_id a": "error 3 a",
			"skipping_event_invalid_distinct_id b": "error 1 b",
			"ignored_invalid_timestamp c":          "warning 1 c",
			"of_a_stage ":                          "warning 2 <nil>",
		} {
			if got[key] != want {
				t.Errorf("%s: %q, want %q", key, got[key], want)
			}
		}
		if count, list = listOf(t, base+"/api/projects/1/ingestion_warnings/?type=ignored_invalid_timestamp"); count != 1 || list[0]["event_uuid"] == nil {
			t.Errorf("of one type: %v", list)
		}
		if count, _ = listOf(t, base+"/api/projects/7/ingestion_warnings/"); count != 0 {
			t.Errorf("another project sees %d", count)
		}
	})
}

// warner is a stage that adds a warning for each event.
type warner struct{}

func (warner) Name() string { return "warner" }

func (warner) Process(ctx context.Context, batch []*sdk.Event) error {
	for _, e := range batch {
		warning.Add(ctx, warning.Warning{ProjectID: e.ProjectID, Type: "of_a_stage", EventUUID: e.UUID})
	}
	return nil
}

func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	d, j := dbtest.SQLite(t), openJournal(t, t.TempDir())
	var items []string
	for i := range 1100 {
		items = append(items, fmt.Sprintf(`{"event":"random %d"}`, i))
	}
	accept(t, j, append(items, "end")...)
	s := &stage{db: d}
	startWorker(t, workerConfig(), j, d, nil, s)
	eventually(t, "the last event", func() bool { return s.seen() == "end" })
	var rows, others int
	if err := d.Read(t.Context()).NewRaw("SELECT count(*), max(count) FROM ingestion_warnings").Scan(t.Context(), &rows, &others); err != nil {
		t.Fatal(err)
	}
	if rows != 1001 || others != 100 {
		t.Errorf("%d rows, the largest counts %d", rows, others)
	}
}

func TestDeadLettersAreListed(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		j := openJournal(t, t.TempDir())
		s := &stage{db: d}
		s.fail = func(batch []*sdk.Event) error {
			for _, e := range batch {
				if strings.HasPrefix(e.Name, "bad") {
					return errors.New("cannot take " + e.Name)
				}
			}
			return nil
		}
		accept(t, j, "bad 1", "bad 2", "end")
		startWorker(t, workerConfig(), j, d, nil, s)
		eventually(t, "the last event", func() bool { return s.seen() == "end" })
		base := webtest.Serve(t, keys(), deadletter.NewHTTP(deadletter.NewService(d, event.DefaultLimits(), nil)))
		count, list := listOf(t, base+"/api/projects/1/dead_letters/?limit=1")
		if count != 2 || len(list) != 1 || list[0]["event"] != "bad 2" || list[0]["source"] != "worker" {
			t.Fatalf("%d: %v", count, list)
		}
		if list[0]["message"] != "stage test: cannot take bad 2" || list[0]["payload"].(map[string]any)["event"] != "bad 2" {
			t.Errorf("got %v", list[0])
		}
		if count, _ = listOf(t, base+"/api/projects/1/dead_letters/?event=bad+1&source=worker&after=2024-01-01"); count != 1 {
			t.Errorf("filtered: %d", count)
		}
		if count, _ = listOf(t, base+"/api/projects/1/dead_letters/?before=2024-01-01"); count != 0 {
			t.Errorf("before: %d", count)
		}
		one := fmt.Sprintf("%s/api/projects/1/dead_letters/%v/", base, list[0]["id"])
		if got := send(t, "GET", one, "", "", "Authorization", "Bearer phx_test"); got.status != 200 || !strings.Contains(got.body, `"event":"bad 2"`) {
			t.Errorf("one: %d %s", got.status, got.body)
		}
		for path, status := range map[string]int{"projects/7/dead_letters/1/": 404, "projects/1/dead_letters/x/": 404, "projects/1/dead_letters/?after=x": 400} {
			if got := send(t, "GET", base+"/api/"+path, "", "", "Authorization", "Bearer phx_test"); got.status != status {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
	})
}

package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/actions/history"
	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// defined is the definitions of project 1.
type defined map[int64]*history.Definition

func (d defined) Definition(_ context.Context, projectID, id int64) (history.Definition, error) {
	if a := d[id]; a != nil && a.ProjectID == projectID {
		return *a, nil
	}
	return history.Definition{}, fault.New(fault.NotFound, "not_found", "Not found.")
}

func TestHistoryHTTP(t *testing.T) {
	p := newPlace(t, dbtest.SQLite(t), nil)
	for i := range 3 {
		p.happened(today.Add(-time.Minute), "signup", fmt.Sprint("u", i), fmt.Sprintf(`{"$set":{"email":"=%d@example.com"},"n":%d}`, i, i))
	}
	p.happened(today.AddDate(0, 0, -40), "signup", "old", `{}`)
	p.happened(today.Add(-time.Minute), "left", "u0", `{}`)
	base := webtest.Serve(t, webtest.DefaultKeys(), history.NewHTTP(defined{
		1: action(1, actionmatch.Step{Event: "signup"}), 2: action(2), 3: action(3, actionmatch.Step{URL: "(", URLMatching: "regex"}),
	}, p.history))
	path := base + "/api/projects/1/actions/"
	filter := "&properties=" + url.QueryEscape(`[{"key":"n","value":1}]`)
	one := `{"id":2,"uuid":"UUID","name":"=1@example.com","distinct_ids":["u1"],"properties":{"email":"=1@example.com","$creator_event_uuid":"UUID"},"created_at":"TIME"}`
	entity := "An entity id and the entity type must be provided to determine an entity"
	for _, c := range []struct{ name, path, want string }{
		{"the count of three months", "1/count/", `200 {"count":4}`},
		{"as a table", "1/count/?format=csv", "200 count\r\n4\r\n"},
		{"no steps", "2/count", `200 {"count":0}`},
		{"a step that means nothing", "3/count/", `200 {"count":0,"bytecode_error":"steps__0__url: `},
		{"an unknown action", "9/count/", `404 {"type":"invalid_request","code":"not_found","detail":"Not found.","attr":null}`},
		{"an unknown format", "1/count/?format=xml", `404 {"type":"invalid_request","code":"not_found","detail":"Not found.","attr":null}`},
		{"people of an action", "people/?entity_type=actions&entity_id=1" + filter, `200 {"results":[{"people":[` + one + `],"count":1}],"next":null,"previous":null}`},
		{"people of an event", "people/?entity_type=events&entity_id=signup" + filter, `200 {"results":[{"people":[` + one + `],"count":1}],"next":null,"previous":null}`},
		{"people as a table", "people/?entity_type=actions&entity_id=1&format=csv" + filter,
			"200 Distinct ID,Internal ID,Email,Name,Properties\r\nu1,UUID,'=1@example.com,'=1@example.com,\"{\"\"email\"\":\"\"=1@example.com\"\",\"\"$creator_event_uuid\"\":\"\"UUID\"\"}\"\r\n"},
		{"no entity", "people/", `400 {"type":"validation_error","code":"invalid_input","detail":"` + entity + `","attr":null}`},
		{"no id of an action", "people/?entity_type=actions", `400 {"type":"validation_error","code":"invalid_input","detail":"` + entity + `","attr":null}`},
		{"another type", "people/?entity_type=cohorts&entity_id=1", `400 {"type":"validation_error","code":"invalid_input","detail":"` + entity + `","attr":null}`},
		{"a date that is none", "people/?entity_type=events&date_from=soon",
			`400 {"type":"validation_error","code":"invalid_input","detail":"Not a date. Write 2026-03-01, 2026-03-01T12:00:00Z or -7d.","attr":"date_from"}`},
		{"filters that are none", "people/?entity_type=events&properties=7",
			`400 {"type":"validation_error","code":"invalid_input","detail":"Not a JSON list of property filters.","attr":"properties"}`},
		{"a filter that means nothing", "people/?entity_type=events&properties=" + url.QueryEscape(`[{"key":"n","value":"(","operator":"regex"}]`),
			`400 {"type":"validation_error","code":"invalid_input","detail":"invalid regex pattern: missing closing ): ` + "`(`" + `","attr":"properties__0__value"}`},
		{"an interval that is none", "1/series/?interval=fortnight",
			`400 {"type":"validation_error","code":"invalid_choice","detail":"\"fortnight\" is not a valid choice.","attr":"interval"}`},
		{"a time that ends before it begins", "1/series/?date_from=-1d&date_to=-3d",
			`400 {"type":"validation_error","code":"invalid_input","detail":"The end of the time is before its beginning.","attr":"date_to"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := anonymous(fetch(t, path+c.path))
			if got != c.want && (!strings.HasSuffix(c.want, " ") || !strings.HasPrefix(got, c.want)) {
				t.Fatalf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("a series has every day", func(t *testing.T) {
		var series struct {
			Results []struct{ Count int64 }
			Count   int64
			At      *time.Time `json:"last_calculated_at"`
		}
		decode(t, fetch(t, path+"1/series/?date_from=-45d"), &series)
		if len(series.Results) != 46 || series.Count != 4 || series.At == nil {
			t.Fatalf("%+v", series)
		}
	})
	t.Run("people of all time", func(t *testing.T) {
		var page struct{ Results []struct{ Count int } }
		decode(t, fetch(t, path+"people/?entity_type=events&date_from=all"), &page)
		if len(page.Results) != 1 || page.Results[0].Count != 4 {
			t.Fatalf("%+v", page)
		}
	})
}

func TestSeriesOfSeveralActions(t *testing.T) {
	p := newPlace(t, dbtest.SQLite(t), nil)
	for i := range 3 {
		p.happened(today.AddDate(0, 0, -i), "signup", fmt.Sprint("u", i), `{}`)
	}
	p.happened(today.AddDate(0, 0, -1), "left", "u0", `{}`)
	elsewhere := action(4, actionmatch.Step{Event: "signup"})
	elsewhere.ProjectID = 2
	base := webtest.Serve(t, webtest.DefaultKeys(), actions.NewSeriesHTTP(defined{
		1: action(1, actionmatch.Step{Event: "signup"}), 2: action(2, actionmatch.Step{Event: "left"}), 3: action(3), 4: elsewhere,
	}, p.history, zaptest.NewLogger(t)))
	path := base + "/api/projects/1/actions/series/"
	var got struct {
		Starts  []string
		Results []struct {
			ID     int64
			Counts []int64
			Count  int64
		}
	}
	decode(t, fetch(t, path+"?date_from=-3d&ids=2,1,%203,4,9,1"), &got)
	if len(got.Starts) != 4 || fmt.Sprint(got.Results) != "[{2 [0 0 1 0] 1} {1 [0 1 1 1] 3} {3 [0 0 0 0] 0}]" {
		t.Errorf("%+v", got)
	}
	many := "1"
	for i := range 100 {
		many += fmt.Sprint(",", i+2)
	}
	for query, want := range map[string]string{
		"": `"required"`, "?ids=1,x": `"invalid_input"`, "?ids=" + many: `"max_length"`, "?ids=1&interval=year": `"invalid_choice"`,
		"?ids=1&date_from=all": `"attr":"date_from"`, "?ids=1&date_from=-500d": `"attr":"date_from"`,
	} {
		if answer := fetch(t, path+query); !strings.HasPrefix(answer, "400 ") || !strings.Contains(answer, want) {
			t.Errorf("%s: %s, want %s", query, answer, want)
		}
	}
}

// failingSeries fails for some actions.
type failingSeries map[int64]error

func (f failingSeries) Series(ctx context.Context, a *history.Definition, _ *time.Location, _, _ time.Time, _ history.Interval) ([]history.Bucket, history.CountStatus, error) {
	if err := ctx.Err(); err != nil {
		return nil, history.CountStatus{}, err
	}
	buckets := []history.Bucket{{Count: 1}, {Count: 2}}
	return buckets, history.CountStatus{Count: 3}, f[a.ID]
}

// An action that cannot be counted does not take the counts of the others.
func TestOneSeriesOfSeveralFails(t *testing.T) {
	series := failingSeries{2: fault.New(fault.Unavailable, "busy", "Try again later."), 3: errors.New("secret detail")}
	base := webtest.Serve(t, webtest.DefaultKeys(), actions.NewSeriesHTTP(defined{1: action(1), 2: action(2), 3: action(3)}, series, zap.NewNop()))
	var got struct {
		Results []struct {
			ID     int64
			Counts []int64
			Count  int64
			Error  string
		}
	}
	decode(t, fetch(t, base+"/api/projects/1/actions/series/?date_from=-1d&ids=1,2,3"), &got)
	if fmt.Sprint(got.Results) != "[{1 [1 2] 3 } {2 [0 0] 0 Try again later.} {3 [0 0] 0 It could not be counted now.}]" {
		t.Errorf("%+v", got.Results)
	}
}

func TestPeoplePages(t *testing.T) {
	p := newPlace(t, dbtest.SQLite(t), nil)
	for i := range 205 {
		p.happened(today.Add(-time.Minute), "signup", fmt.Sprint("u", i), `{}`)
	}
	base := webtest.Serve(t, webtest.DefaultKeys(), history.NewHTTP(defined{}, p.history))
	seen, last := 0, ""
	for next := base + "/api/projects/1/actions/people/?entity_type=events&entity_id=signup"; next != ""; {
		var page struct {
			Results        []struct{ Count int }
			Next, Previous string
		}
		decode(t, fetch(t, next), &page)
		seen += page.Results[0].Count
		if (page.Previous == "") != (last == "") {
			t.Errorf("the page before %s is %q", next, page.Previous)
		}
		last, next = next, page.Next
	}
	if seen != 205 || !strings.Contains(last, "offset=200") {
		t.Errorf("saw %d people, the last page was %s", seen, last)
	}
}

var (
	someUUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	someTime = regexp.MustCompile(`"created_at":"[^"]+"`)
)

// anonymous replaces the parts of an answer that differ between runs.
func anonymous(s string) string {
	return someTime.ReplaceAllString(someUUID.ReplaceAllString(s, "UUID"), `"created_at":"TIME"`)
}

// fetch is the status and the body of an answer.
func fetch(t *testing.T, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer phx_test")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(res.StatusCode, " ", string(body))
}

func decode(t *testing.T, answer string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(strings.TrimPrefix(answer, "200 ")), into); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
}

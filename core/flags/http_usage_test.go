package flags_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/events"
)

// tile is a tile of a dashboard.
type tile struct {
	Name  string
	Query struct {
		Event, Math, Value string
		Breakdown          string
	}
	Days   []string
	Result []struct {
		Breakdown string `json:"breakdown_value"`
		Data      []int64
		Count     int64
	}
	Error string
}

type dashboard struct {
	ID          int64
	Name        string
	Tags        []string
	Filters     map[string]string
	FeatureFlag *int64 `json:"feature_flag"`
	Tiles       []tile
}

const dashboardsPath = "/api/projects/1/dashboards/"

// callsOf returns a store with calls on the last two days.
func callsOf(key string, today time.Time) func(q events.CountQuery) []events.Count {
	return func(q events.CountQuery) []events.Count {
		if q.Value != key || q.Property != "$feature_flag" || q.Event != "$feature_flag_called" || q.Breakdown != "$feature_flag_response" {
			return nil
		}
		if q.Interval > 24*time.Hour {
			return []events.Count{{Start: q.From, Value: "false", Events: 1, People: 1}, {Start: q.From, Value: "true", Events: 5, People: 2}}
		}
		return []events.Count{
			{Start: today.Add(-24 * time.Hour), Value: "true", Events: 2, People: 2},
			{Start: today, Value: "false", Events: 1, People: 1}, {Start: today, Value: "true", Events: 3, People: 1},
		}
	}
}

func TestUsageDashboardOfAFlag(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		h.at(time.Date(2024, 5, 31, 13, 0, 0, 0, time.UTC))
		h.calls.answer = callsOf("nav", time.Date(2024, 5, 31, 0, 0, 0, 0, time.UTC))
		f := h.create(`{"key":"nav"}`)
		where := dashboardsPath + itoa(*f.UsageDashboard) + "/"
		var d dashboard
		h.do("GET", where, "").want(200).into(&d)
		if d.Name != "Generated Dashboard: nav Usage" || len(d.Tiles) != 2 || d.Filters["date_from"] != "-30d" || !slices.Equal(d.Tags, []string{"feature flags"}) || *d.FeatureFlag != f.ID {
			t.Fatalf("dashboard: %+v", d)
		}
		volume, people := d.Tiles[0], d.Tiles[1]
		if len(volume.Days) != 30 || volume.Days[29] != "2024-05-31" || volume.Days[0] != "2024-05-02" || volume.Query.Value != "nav" {
			t.Errorf("days %v of %+v", volume.Days, volume.Query)
		}
		if len(volume.Result) != 2 || volume.Result[0].Breakdown != "true" || volume.Result[0].Count != 5 || !slices.Equal(volume.Result[0].Data[28:], []int64{2, 3}) {
			t.Errorf("volume: %+v", volume.Result)
		}
		if people.Query.Math != "unique_users" || people.Result[0].Count != 2 || !slices.Equal(people.Result[0].Data[28:], []int64{2, 1}) {
			t.Errorf("people: %+v", people.Result)
		}
		var list page[dashboard]
		h.do("GET", dashboardsPath, "").want(200).into(&list)
		if list.Count != 1 || list.Results[0].Tiles != nil {
			t.Errorf("list: %+v", list)
		}
		h.patch(f.ID, `{"key":"menu"}`).want(200)
		h.do("GET", where, "").want(200).into(&d)
		if d.Name != "Generated Dashboard: menu Usage" || d.Tiles[0].Query.Value != "menu" {
			t.Errorf("after the rename: %+v", d)
		}
		h.do("PATCH", where, `{"name":"Mine","tags":["A"]}`).want(200).into(&d)
		if d.Name != "Mine" || !slices.Equal(d.Tags, []string{"a"}) {
			t.Errorf("after the rename: %+v", d)
		}
		h.do("PATCH", where, `{"name":""}`).fails(400, "blank", "name")
		h.patch(f.ID, `{"analytics_dashboards":[`+itoa(d.ID)+`]}`).want(200)
		h.do("DELETE", where, "").want(204)
		h.do("GET", where, "").want(200) // it can be restored
		if got := h.do("GET", path(f.ID), "").flag(200); got.UsageDashboard != nil || len(got.AnalyticsDashboards) != 0 {
			t.Errorf("the flag still shows the deleted dashboard: %+v", got)
		}
	})
}

func TestUsageDashboardEndpoints(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		f := h.create(`{"key":"nav","_should_create_usage_dashboard":false}`)
		enrich := path(f.ID) + "enrich_usage_dashboard/"
		checkAnswer := func(a answer, want string) {
			t.Helper()
			var s struct {
				Success bool
				Error   string
			}
			a.into(&s)
			if s.Success != (want == "") || !strings.Contains(s.Error, want) {
				t.Errorf("answer %s, want %q", a.body, want)
			}
		}
		checkAnswer(h.do("POST", enrich, "").want(400), "not found")
		checkAnswer(h.do("POST", path(f.ID)+"dashboard/", "").want(200), "")
		first := *h.do("GET", path(f.ID), "").flag(200).UsageDashboard
		checkAnswer(h.do("POST", path(f.ID)+"dashboard/", `{}`).want(200), "")
		got := h.do("GET", path(f.ID), "").flag(200)
		if *got.UsageDashboard == first || got.Version != 3 {
			t.Errorf("a second call keeps the link: %+v", got)
		}
		checkAnswer(h.do("POST", enrich, "").want(400), "No enriched analytics")
		h.patch(f.ID, `{"has_enriched_analytics":true}`).want(200)
		checkAnswer(h.do("POST", enrich, "").want(200), "")
		checkAnswer(h.do("POST", enrich, "").want(400), "already")
		var d dashboard
		h.do("GET", dashboardsPath+itoa(*got.UsageDashboard)+"/", "").want(200).into(&d)
		if len(d.Tiles) != 6 || d.Tiles[2].Query.Event != "$feature_view" || d.Tiles[5].Query.Event != "$feature_interaction" {
			t.Errorf("tiles: %+v", d.Tiles)
		}
		h.do("POST", path(99)+"dashboard/", "").fails(404, "not_found", "")
	})
}

func TestUsageOfAFlag(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	h.at(time.Date(2024, 5, 31, 13, 0, 0, 0, time.UTC))
	h.calls.answer = callsOf("nav", time.Date(2024, 5, 31, 0, 0, 0, 0, time.UTC))
	h.create(`{"key":"nav"}`)
	want := `{"last_called_at":null,"calls":6,"days":["2024-05-30","2024-05-31"],"variants":[` +
		`{"response":"true","calls":5,"people":2,"daily":[2,3]},{"response":"false","calls":1,"people":1,"daily":[0,1]}]}`
	if got := string(h.do("GET", path(1)+"usage/?days=2", "").want(200).body); got != want {
		t.Errorf("usage\n got %s\nwant %s", got, want)
	}
	h.do("GET", path(1)+"usage/?days=0", "").fails(400, "min_value", "days")
	h.do("GET", path(1)+"usage/?days=9999", "").fails(400, "max_value", "days")
	h.do("GET", path(9)+"usage/", "").fails(404, "not_found", "")
}

func TestEvaluationReasons(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	h.create(`{"key":"on"}`)
	h.create(`{"key":"blue","filters":{"groups":[{"properties":[{"key":"distinct_id","type":"person","value":"x"}]},{"variant":"b"}],"multivariate":{"variants":[{"key":"b","rollout_percentage":100}]}}}`)
	h.create(`{"key":"off","active":false}`)
	h.create(`{"key":"company","filters":{"aggregation_group_type_index":0,"groups":[{"properties":[{"key":"$group_key","type":"group","group_type_index":0,"value":"acme"}]}]}}`)
	gone := h.create(`{"key":"gone"}`)
	h.patch(gone.ID, `{"deleted":true}`).want(200)
	want := `{"blue":{"value":"b","evaluation":{"reason":"condition_match","condition_index":1}},` +
		`"company":{"value":true,"evaluation":{"reason":"condition_match","condition_index":0}},` +
		`"off":{"value":false,"evaluation":{"reason":"disabled","condition_index":null}},` +
		`"on":{"value":true,"evaluation":{"reason":"condition_match","condition_index":0}}}`
	if got := string(h.do("GET", base+`evaluation_reasons/?distinct_id=ada&groups={%22company%22:%22acme%22}`, "").want(200).body); got != want {
		t.Errorf("reasons\n got %s\nwant %s", got, want)
	}
	var reasons map[string]struct {
		Value      any
		Evaluation struct{ Reason string }
	}
	h.do("GET", base+"evaluation_reasons/?distinct_id=ada", "").want(200).into(&reasons)
	if r := reasons["company"]; r.Value != false || r.Evaluation.Reason != "no_group_type" {
		t.Errorf("without a group: %+v", r)
	}
	h.do("GET", base+"evaluation_reasons/", "").fails(400, "required", "distinct_id")
	h.do("GET", base+"evaluation_reasons/?distinct_id=ada&groups=x", "").fails(400, "invalid_input", "groups")
}

func TestMyFlags(t *testing.T) {
	t.Parallel()
	h := onOne(t)
	if got := string(h.do("GET", base+"my_flags/", "").want(200).body); got != "[]" {
		t.Errorf("no flags: %s", got)
	}
	h.at(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
	h.create(`{"key":"mine","filters":{"groups":[{"properties":[{"key":"distinct_id","type":"person","value":"ada-1"}]}]}}`)
	h.at(time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC))
	h.create(`{"key":"theirs","filters":{"groups":[{"properties":[{"key":"distinct_id","type":"person","value":"bob-2"}]}]}}`)
	h.create(`{"key":"off","active":false}`)
	var mine []struct {
		FeatureFlag flag `json:"feature_flag"`
		Value       json.RawMessage
	}
	h.do("GET", base+"my_flags", "").want(200).into(&mine)
	if len(mine) != 2 || mine[0].FeatureFlag.Key != "theirs" || string(mine[0].Value) != "false" || mine[1].FeatureFlag.Key != "mine" || string(mine[1].Value) != "true" {
		t.Errorf("my flags: %+v", mine)
	}
}

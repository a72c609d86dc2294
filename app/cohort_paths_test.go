package app_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestPathsOfCohorts checks the persons in cohorts, cohorts of flags, copies of flags
// with cohorts, and related persons and groups.
func TestPathsOfCohorts(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	const base = "/api/projects/1"
	capturePersons(t, w, 12)

	all := w.create(t, base+"/cohorts", `{"name":"Everyone with a number","filters":{"properties":{"type":"AND","values":[{"key":"number","type":"person","operator":"is_set","value":"is_set"}]}}}`)
	odd := w.create(t, base+"/cohorts", `{"name":"Odd","filters":{"properties":{"type":"AND","values":[{"key":"id","type":"cohort","value":`+all+`},{"key":"odd","type":"person","operator":"exact","value":"true"}]}}}`)
	list := w.create(t, base+"/cohorts", `{"name":"Listed","is_static":true,"distinct_ids":["member-2","member-3","alias-3","member-4","absent"]}`)

	t.Run("persons of a cohort", func(t *testing.T) {
		waitFor(t, "persons of the cohort", func() bool { return len(w.actors(t, base+"/cohorts/"+all+"/persons/?limit=5")) == 12 })
		if got := w.actors(t, base+"/cohorts/"+odd+"/persons/"); strings.Join(got, " ") != "member-1 member-3 member-5 member-7 member-9 member-11" {
			t.Errorf("odd ones: %v", got)
		}
		if got := w.actors(t, base+"/cohorts/"+odd+"/persons/?offset=1&limit=2"); strings.Join(got, " ") != "member-3 member-5 member-7 member-9 member-11" {
			t.Errorf("odd ones after the first: %v", got)
		}
		if got := w.actors(t, base+"/cohorts/"+list+"/persons?limit=2"); strings.Join(got, " ") != "member-2 member-3 member-4" {
			t.Errorf("listed ones: %v", got)
		}
		if got := w.actors(t, base+"/cohorts/"+list+"/persons?limit=1&offset=1"); strings.Join(got, " ") != "member-3 member-4" {
			t.Errorf("listed ones after the first: %v", got)
		}
		w.wants(t, "GET", base+"/cohorts/"+list+"/persons?limit=1&offset=2", "", 200, `"type":"person"`, `"previous":"http`, `offset=1"`, `"next":null`)
		w.wants(t, "GET", base+"/cohorts/"+odd+"/persons?after=x", "", 400, `"attr":"after"`)
		w.wants(t, "GET", base+"/cohorts/"+absent+"/persons/", "", 404)
	})
	t.Run("a cohort of a flag", func(t *testing.T) {
		flag := w.create(t, base+"/feature_flags", `{"key":"odd","filters":{"multivariate":{"variants":[{"key":"a","rollout_percentage":50},{"key":"b","rollout_percentage":50}]},
			"groups":[{"properties":[{"key":"odd","type":"person","operator":"exact","value":"true"}],"rollout_percentage":100}]}}`)
		path := base + "/feature_flags/" + flag
		got := w.wants(t, "POST", path+"/create_static_cohort_for_flag/", "{}", 201, `{"cohort":{"id":`, `"name":"Users with feature flag odd enabled at 20`, `"is_static":true`, `"count":6`)
		var made struct{ Cohort struct{ ID int64 } }
		if err := json.Unmarshal([]byte(got), &made); err != nil {
			t.Fatal(err)
		}
		if got := w.actors(t, fmt.Sprintf("%s/cohorts/%d/persons", base, made.Cohort.ID)); len(got) != 6 || slices.Contains(got, "member-2") {
			t.Errorf("persons of the flag: %v", got)
		}
		w.wants(t, "PATCH", path, `{"active":false}`, 200)
		w.wants(t, "POST", path+"/create_static_cohort_for_flag/", "{}", 400, "it is not active")
		w.wants(t, "POST", base+"/feature_flags/"+absent+"/create_static_cohort_for_flag/", "{}", 404)
	})
	t.Run("copies of flags with cohorts", func(t *testing.T) {
		w.create(t, base+"/feature_flags", `{"key":"nested","filters":{"groups":[{"properties":[{"key":"id","type":"cohort","operator":"in","value":`+odd+`}]}]}}`)
		w.create(t, base+"/feature_flags", `{"key":"listed","filters":{"groups":[{"properties":[{"key":"id","type":"cohort","operator":"in","value":`+list+`}]}]}}`)
		other := fmt.Sprintf("/api/projects/%d", w.second.ID)
		copyFlag := func(key string, parts ...string) {
			t.Helper()
			w.wants(t, "POST", "/api/organizations/@current/feature_flags/copy_flags/",
				fmt.Sprintf(`{"feature_flag_key":%q,"from_project":1,"target_project_ids":[%d]}`, key, w.second.ID), 200, parts...)
		}
		copyFlag("listed", `"success":[]`, `static cohort \"Listed\"`)
		twin := w.create(t, other+"/cohorts", `{"name":"Everyone with a number","filters":{"properties":{"type":"AND","values":[{"key":"x","type":"person","operator":"is_set","value":"is_set"}]}}}`)
		copyFlag("nested", `"failed":[]`)
		copyFlag("nested", `"failed":[]`)
		got := w.wants(t, "GET", other+"/cohorts/?search=Odd", "", 200, `"count":1,`, `"value":`+twin+`}`)
		var page struct{ Results []struct{ ID int64 } }
		if err := json.Unmarshal([]byte(got), &page); err != nil || len(page.Results) != 1 {
			t.Fatal(err, got)
		}
		w.wants(t, "GET", other+"/feature_flags/?search=nested", "", 200, fmt.Sprintf(`"value":%d`, page.Results[0].ID))
		w.create(t, other+"/cohorts", `{"name":"Listed","is_static":true,"distinct_ids":["x"]}`)
		copyFlag("listed", `"failed":[]`)
	})
	t.Run("related persons and groups", func(t *testing.T) {
		waitFor(t, "related persons", func() bool {
			_, got := w.as(t, w.PersonalKey, "GET", base+"/groups/related/?group_type_index=0&id=acme", "")
			return strings.Contains(got, `"member-12"`) && strings.Contains(got, `"group_key":"north"`)
		})
		got := w.wants(t, "GET", base+"/groups/related/?group_type_index=0&id=acme", "", 200, `"type":"group","id":"north","group_type_index":1`, `"properties":{"city":"Oslo"}`)
		if strings.Contains(got, `"member-1"`) || strings.Contains(got, `"acme"`) || strings.Count(got, `"type":"person"`) != 6 {
			t.Errorf("related to acme: %s", got)
		}
		person := w.wants(t, "GET", base+"/persons/?distinct_id=member-2", "", 200)
		var page struct{ Results []struct{ UUID string } }
		if err := json.Unmarshal([]byte(person), &page); err != nil || len(page.Results) != 1 {
			t.Fatal(err, person)
		}
		got = w.wants(t, "GET", base+"/groups/related/?id="+page.Results[0].UUID, "", 200, `"id":"acme","group_type_index":0`, `"id":"north"`)
		if strings.Contains(got, `"type":"person"`) {
			t.Errorf("related to a person: %s", got)
		}
		w.wants(t, "GET", base+"/groups/related/?group_type_index=0&id=absent", "", 404)
		w.wants(t, "GET", base+"/groups/related/?group_type_index=0", "", 400, `"attr":"id"`)
	})
}

// capturePersons captures persons with the property number. Those with an even number
// belong to a company and a region.
func capturePersons(t *testing.T, w *accessWorld, n int) {
	t.Helper()
	events := []string{
		`{"event":"$groupidentify","distinct_id":"x","properties":{"$group_type":"company","$group_key":"acme","$group_set":{"size":3}}}`,
		`{"event":"$groupidentify","distinct_id":"x","properties":{"$group_type":"region","$group_key":"north","$group_set":{"city":"Oslo"}}}`,
	}
	for i := 1; i <= n; i++ {
		groups := `{}`
		if i%2 == 0 {
			groups = `{"company":"acme","region":"north"}`
		}
		events = append(events, fmt.Sprintf(`{"event":"visit","distinct_id":"member-%d","properties":{"$groups":%s,"$set":{"number":%d,"odd":"%t"}}}`, i, groups, i, i%2 == 1))
	}
	events = append(events, `{"event":"$create_alias","distinct_id":"member-3","properties":{"alias":"alias-3"}}`)
	w.wants(t, "POST", "/batch/", fmt.Sprintf(`{"api_key":%q,"batch":[%s]}`, w.ProjectKey, strings.Join(events, ",")), 200)
}

// actors follows the pages of a list of persons and returns their first distinct ids
// that begin with "member", in the order of their numbers.
func (w *accessWorld) actors(t *testing.T, path string) (ids []string) {
	t.Helper()
	for range 50 {
		var page struct {
			Results []struct {
				DistinctIDs []string `json:"distinct_ids"`
			}
			Next *string
		}
		if err := json.Unmarshal([]byte(w.wants(t, "GET", path, "", 200)), &page); err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Results {
			ids = append(ids, p.DistinctIDs[slices.IndexFunc(p.DistinctIDs, func(id string) bool { return strings.HasPrefix(id, "member") })])
		}
		if page.Next == nil {
			slices.SortFunc(ids, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
			return ids
		}
		next, err := url.Parse(*page.Next)
		if err != nil {
			t.Fatal(err)
		}
		path = next.RequestURI()
	}
	t.Fatal("the pages have no end")
	return nil
}

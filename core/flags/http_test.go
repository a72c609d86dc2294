package flags_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFlagJSON(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		h.at(time.Date(2023, 10, 2, 9, 0, 0, 123456000, time.UTC))
		got := string(h.do("POST", base, `{"key":"new-nav","name":"Roll out nav","filters":{"groups":[{"properties":[],"rollout_percentage":30}]},"tags":["Beta "],"_should_create_usage_dashboard":false}`).want(201).body)
		want := `{"id":1,"name":"Roll out nav","key":"new-nav","filters":{"groups":[{"properties":[],"rollout_percentage":30}]},` +
			`"deleted":false,"active":true,"created_by":{"id":1,"uuid":"018b0c1e-1111-7aaa-8bbb-0123456789ab","distinct_id":"ada-1","first_name":"Ada","email":"ada@corp.test","is_email_verified":true,"last_name":"","role_at_organization":null,"hedgehog_config":null},` +
			`"created_at":"2023-10-02T09:00:00.123456Z","is_simple_flag":true,"rollout_percentage":30,"ensure_experience_continuity":false,` +
			`"experiment_set":[],"features":{},"rollback_conditions":null,"performed_rollback":null,"can_edit":true,"tags":["beta"],` +
			`"usage_dashboard":null,"analytics_dashboards":[],"has_enriched_analytics":false,` +
			`"version":1,"updated_at":"2023-10-02T09:00:00.123456Z","status":"ACTIVE","bucketing_identifier":"distinct_id","evaluation_runtime":"all","evaluation_contexts":[],"evaluation_tags":[],"is_remote_configuration":false,"has_encrypted_payloads":false,` +
			`"last_modified_by":{"id":1,"uuid":"018b0c1e-1111-7aaa-8bbb-0123456789ab","distinct_id":"ada-1","first_name":"Ada","email":"ada@corp.test","is_email_verified":true,"last_name":"","role_at_organization":null,"hedgehog_config":null},"last_called_at":null,"user_access_level":"editor","surveys":[],"creation_context":null,"archived":false}`
		if got != want {
			t.Errorf("created flag\n got %s\nwant %s", got, want)
		}
		if again := string(h.do("GET", path(1), "").want(200).body); again != want {
			t.Errorf("read flag\n got %s\nwant %s", again, want)
		}
	})
}

func TestFlagLifecycle(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		f := h.create(`{"key":"a"}`)
		if string(f.Filters) != `{"groups":[{"properties":[],"rollout_percentage":null}]}` || !f.IsSimple || f.Rollout != nil {
			t.Errorf("a flag without filters is shown as %s, simple %v, rollout %v", f.Filters, f.IsSimple, f.Rollout)
		}
		if f.UsageDashboard == nil {
			t.Error("a new flag has no usage dashboard")
		}
		for _, p := range []string{"/api/projects/1/feature_flags/1", "/api/projects/@current/feature_flags/1/", "/api/projects/1/feature_flags/1/"} {
			if got := h.do("GET", p, "").flag(200); got.Key != "a" {
				t.Errorf("GET %s is flag %q", p, got.Key)
			}
		}
		p := h.patch(f.ID, `{"active":false,"name":" hello "}`).flag(200)
		if p.Active || p.Name != "hello" || p.Version != 2 || p.Status != "INACTIVE" {
			t.Errorf("after PATCH: %+v", p)
		}
		p = h.do("PUT", path(f.ID), `{"key":"a2","active":true}`).flag(200)
		if p.Key != "a2" || p.Name != "hello" || p.Version != 3 || p.PerformedRollback == nil || *p.PerformedRollback {
			t.Errorf("after PUT: %+v", p)
		}
		h.do("PUT", path(f.ID), `{"name":"x"}`).fails(400, "required", "key")
		refused := h.do("DELETE", path(f.ID), "").want(405)
		if len(refused.body) != 0 || !strings.Contains(refused.header.Get("Allow"), "PATCH") {
			t.Errorf("DELETE answers %q, allows %q", refused.body, refused.header.Get("Allow"))
		}
		h.do("GET", path(99), "").fails(404, "not_found", "")
		h.do("GET", base+"x/", "").fails(404, "not_found", "")
		h.do("GET", "/api/projects/2/feature_flags/1/", "").fails(404, "not_found", "")
	})
}

func TestScopes(t *testing.T) {
	h := onOne(t)
	h.create(`{"key":"a"}`)
	h.as("phx_read").do("GET", path(1), "").want(200)
	h.as("phx_read").patch(1, `{"active":false}`).fails(403, "permission_denied", "")
	h.as("").do("GET", base, "").fails(401, "not_authenticated", "")
	h.as("phx_wrong").do("DELETE", path(1), "").want(401)
	h.do("POST", base, `{"key":`).fails(400, "parse_error", "")
	h.do("GET", "/api/projects/77/feature_flags/", "").fails(404, "not_found", "")
}

func TestFiltersAreReturnedUnchanged(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		filters := `{"zeta":{"b":1.10,"a":[1e3]},"groups":[{"x":"<é\u0000>","properties":[{"key":"n","type":"person","operator":"gt","value":10.50,"note":null}],"rollout_percentage":12.5}],"multivariate":null}`
		f := h.create(`{"key":"a","filters":` + filters + `}`)
		if string(f.Filters) != filters {
			t.Errorf("filters\n got %s\nwant %s", f.Filters, filters)
		}
		if f.IsSimple || f.Rollout != nil {
			t.Error("a flag with a property is simple")
		}
	})
}

func TestDeletedFlagFreesItsKey(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		old := h.create(`{"key":"a","name":"first"}`)
		gone := h.patch(old.ID, `{"deleted":true}`).flag(200)
		if !gone.Deleted || !gone.Active || gone.Status != "DELETED" || gone.Key != "a" {
			t.Errorf("deleted: %+v", gone)
		}
		var list page[flag]
		h.do("GET", base, "").want(200).into(&list)
		if list.Count != 0 || list.Results == nil {
			t.Errorf("list holds a deleted flag: %+v", list)
		}
		if f := h.do("GET", path(old.ID), "").flag(200); !f.Deleted {
			t.Error("got deleted false, want true")
		}
		next := h.create(`{"key":"a","name":"second"}`)
		if next.ID == old.ID {
			t.Error("the new flag took the id of the old one")
		}
		if f := h.do("GET", path(old.ID), "").flag(200); f.Key != "a:deleted:1" || f.Name != "first" {
			t.Errorf("the old flag became %q %q", f.Key, f.Name)
		}
		var log activity
		h.do("GET", path(old.ID)+"activity/", "").want(200).into(&log)
		if log.TotalCount != 2 {
			t.Errorf("the old flag's history has %d entries, want 2", log.TotalCount)
		}
		h.patch(old.ID, `{"deleted":false}`).fails(400, "unique", "key")
		if f := h.patch(old.ID, `{"deleted":false,"key":"b"}`).flag(200); f.Key != "b" || f.Deleted {
			t.Errorf("restored under another key: %+v", f)
		}
		h.patch(next.ID, `{"deleted":true}`).want(200)
		if f := h.patch(old.ID, `{"key":"a"}`).flag(200); f.Key != "a" {
			t.Errorf("renamed to a deleted flag's key: %+v", f)
		}
		if f := h.patch(next.ID, `{"deleted":false,"key":"c"}`).flag(200); f.Key != "c" {
			t.Errorf("restored: %+v", f)
		}
	})
}

func TestRestoreKey(t *testing.T) {
	h := onOne(t)
	f := h.create(`{"key":"a"}`)
	h.patch(f.ID, `{"deleted":true}`).want(200)
	other := h.create(`{"key":"a"}`)
	h.patch(other.ID, `{"deleted":true}`).want(200)
	if got := h.patch(f.ID, `{"deleted":false}`).flag(200); got.Key != "a" {
		t.Errorf("got key %q of the restored flag", got.Key)
	}
	if got := h.do("GET", path(other.ID), "").flag(200); got.Key != "a:deleted:2" {
		t.Errorf("got key %q of the other flag", got.Key)
	}
}

func TestPatchReplacesFilters(t *testing.T) {
	h := onOne(t)
	f := h.create(`{"key":"a","filters":{"groups":[{"properties":[],"rollout_percentage":30}],"payloads":{"true":"1"}}}`)
	h.patch(f.ID, `{"filters":{"payloads":{"true":"2"}},"name":"n"}`).fails(400, "invalid_input", "filters")
	got := h.patch(f.ID, `{"filters":{},"name":"n"}`).flag(200)
	if string(got.Filters) != string(f.Filters) || got.Name != "n" {
		t.Errorf("empty filters changed the flag to %s", got.Filters)
	}
	got = h.patch(f.ID, `{"filters":{"groups":[]}}`).flag(200)
	if string(got.Filters) != `{"groups":[]}` {
		t.Errorf("filters are %s", got.Filters)
	}
}

func TestRenameEnrollment(t *testing.T) {
	h := onOne(t)
	super := `[{"properties":[{"key":"$feature_enrollment/a","type":"person","operator":"exact","value":["true"]}],"rollout_percentage":100}]`
	f := h.create(`{"key":"a","filters":{"groups":[{"properties":[{"key":"$feature_enrollment/x","type":"person","value":"true"}]}],"super_groups":` + super + `}}`)
	got := string(h.patch(f.ID, `{"key":"b"}`).flag(200).Filters)
	if !strings.Contains(got, `"$feature_enrollment/b"`) || !strings.Contains(got, `"$feature_enrollment/x"`) {
		t.Errorf("filters after the rename: %s", got)
	}
}

func TestLostUpdateIsConflict(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		f := h.create(`{"key":"a","name":"one"}`)
		h.patch(f.ID, `{"version":1,"name":"two"}`).want(200)
		h.as("phx_bob").patch(f.ID, `{"name":"three"}`).want(200)
		var e struct{ Type, Code, Detail string }
		h.patch(f.ID, `{"version":2,"name":"four"}`).fails(409, "conflict", "").into(&e)
		if e.Type != "server_error" || !strings.Contains(e.Detail, "bob@corp.test") {
			t.Errorf("conflict: %+v", e)
		}
		h.patch(f.ID, `{"version":2,"name":"four","original_flag":{"name":"two","active":true}}`).fails(409, "conflict", "")
		got := h.patch(f.ID, `{"version":2,"active":false,"original_flag":{"name":"two","active":true}}`).flag(200)
		if got.Active || got.Name != "three" || got.Version != 4 {
			t.Errorf("a change of another field: %+v", got)
		}
		if got = h.patch(f.ID, `{"active":false}`).flag(200); got.Version != 4 {
			t.Errorf("got version %d after an update without changes, want 4", got.Version)
		}
	})
}

func TestWriteRefreshesMemory(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		start := time.Now()
		f := h.create(`{"key":"a"}`)
		took := time.Since(start)
		if got := h.snapshots.Set(1).Keys(); len(got) != 1 || got[0] != "a" {
			t.Fatalf("got flags %v in memory", got)
		}
		h.patch(f.ID, `{"active":false}`).want(200)
		if got := h.snapshots.Set(1).Keys(); len(got) != 0 {
			t.Fatalf("got flags %v in memory", got)
		}
		t.Logf("created and visible after %s", took)
	})
}

func TestCreatedAtIsWritable(t *testing.T) {
	h := onOne(t)
	f := h.create(`{"key":"a","created_at":"2020-02-03T04:05:06.789+01:00"}`)
	if f.CreatedAt != "2020-02-03T03:05:06.789000Z" {
		t.Errorf("created_at is %s", f.CreatedAt)
	}
	if f = h.patch(f.ID, `{"created_at":"2021-01-01T00:00:00Z"}`).flag(200); f.CreatedAt != "2021-01-01T00:00:00.000000Z" {
		t.Errorf("created_at is %s", f.CreatedAt)
	}
	if f = h.patch(f.ID, `{"created_at":"0001-01-01T00:00:00Z"}`).flag(200); f.CreatedAt != "0001-01-01T00:00:00.000000Z" {
		t.Errorf("the first moment of the calendar is shown as %q", f.CreatedAt)
	}
}

func TestListPagesAndFilters(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		h.at(start)
		h.create(`{"key":"plain","name":"Ünder 50% off","tags":["a","b\"c"]}`)
		h.at(start.Add(time.Hour))
		h.create(`{"key":"multi","active":false,"filters":{"groups":[{"properties":[],"rollout_percentage":10}],"multivariate":{"variants":[{"key":"x","rollout_percentage":100}]}},"tags":["b"]}`)
		h.at(start.Add(2 * time.Hour))
		h.as("phx_bob").create(`{"key":"under_score","filters":{"groups":[{"properties":[],"rollout_percentage":10}]}}`)
		cases := []struct{ query, want string }{
			{"", "under_score multi plain"},
			{"?order=created_at", "plain multi under_score"},
			{"?order=-key", "under_score plain multi"},
			{"?order=nonsense", "under_score multi plain"},
			{"?active=true", "under_score plain"},
			{"?active=false", "multi"},
			{"?created_by_id=2", "under_score"},
			{"?search=UNDER_", "under_score"},
			{"?search=%C3%BCNDER", "plain"},
			{"?search=50%25%20o", "plain"},
			{"?type=boolean", "under_score plain"},
			{"?type=multivariant", "multi"},
			{"?type=experiment", ""},
			{`?tags=["B\"C","zzz"]`, "plain"},
			{`?tags=["b"]`, "multi"},
			{"?tags=broken", "under_score multi plain"},
			{`?excluded_properties=["plain","multi"]`, "under_score"},
			{"?limit=1", "under_score"},
			{"?limit=1&offset=2", "plain"},
			{"?limit=-4&offset=x", "under_score multi plain"},
		}
		for _, c := range cases {
			t.Run("list"+c.query, func(t *testing.T) {
				var p page[flag]
				h.in(t).do("GET", base+strings.ReplaceAll(c.query, `"`, "%22"), "").want(200).into(&p)
				var keys []string
				for _, f := range p.Results {
					keys = append(keys, f.Key)
				}
				if got := strings.Join(keys, " "); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		}
		var p page[flag]
		h.do("GET", base+"?limit=1&offset=1&search=", "").want(200).into(&p)
		if p.Count != 3 || p.Next == nil || p.Previous == nil || !strings.HasPrefix(*p.Next, h.url) {
			t.Errorf("page: %+v", p)
		}
	})
}

func TestTags(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		if got := string(h.do("GET", base+"tags/", "").want(200).body); strings.TrimSpace(got) != `{"results":[]}` {
			t.Errorf("tags of no flags: %s", got)
		}
		h.create(`{"key":"a","tags":["web","b\"c"]}`)
		h.create(`{"key":"b","active":false,"tags":["ios","web"]}`)
		h.create(`{"key":"plain"}`)
		gone := h.create(`{"key":"gone","tags":["old"]}`)
		h.patch(gone.ID, `{"deleted":true}`).want(200)
		if got := string(h.do("GET", base+"tags/", "").want(200).body); strings.TrimSpace(got) != `{"results":["b\"c","ios","web"]}` {
			t.Errorf("tags: %s", got)
		}
	})
}

func TestRollback(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		f := h.create(`{"key":"a","name":"one","tags":["x"],"filters":{"groups":[{"properties":[],"rollout_percentage":10}]}}`)
		h.patch(f.ID, `{"key":"b","name":"two","tags":[],"active":false,"filters":{"groups":[]}}`).want(200)
		got := h.do("POST", path(f.ID)+"rollback/", `{"version":1}`).flag(200)
		if got.Version != 3 || got.Key != "a" || got.Name != "one" || !got.Active || len(got.Tags) != 1 || string(got.Filters) != string(f.Filters) {
			t.Errorf("rolled back: %+v", got)
		}
		h.do("POST", path(f.ID)+"rollback/", `{"version":9}`).fails(400, "does_not_exist", "version")
		h.do("POST", path(f.ID)+"rollback/", `{}`).fails(400, "required", "version")
		h.do("POST", path(9)+"rollback/", `{"version":1}`).fails(404, "not_found", "")
		var log activity
		h.do("GET", path(f.ID)+"activity/", "").want(200).into(&log)
		if log.Results[0].Detail.Trigger == nil || log.Results[0].Detail.Trigger.JobType != "rollback" {
			t.Errorf("activity entry without the trigger rollback: %+v", log.Results[0])
		}
	})
}

// activity is a page of the log.
type activity struct {
	Results []struct {
		ID   string `json:"id"`
		User struct {
			FirstName string `json:"first_name"`
			Email     string `json:"email"`
		} `json:"user"`
		Activity string `json:"activity"`
		Scope    string `json:"scope"`
		ItemID   string `json:"item_id"`
		Detail   struct {
			Name    string `json:"name"`
			Changes []struct {
				Type, Action, Field string
				Before, After       json.RawMessage
			} `json:"changes"`
			Trigger *struct {
				JobType string `json:"job_type"`
			} `json:"trigger"`
		} `json:"detail"`
		CreatedAt string `json:"created_at"`
	} `json:"results"`
	Next       *string `json:"next"`
	Previous   *string `json:"previous"`
	TotalCount int     `json:"total_count"`
}

func TestActivity(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		f := h.create(`{"key":"a","filters":{}}`)
		h.as("phx_bob").patch(f.ID, `{"filters":{"groups":[{"properties":[],"rollout_percentage":60}]},"tags":["t"]}`).want(200)
		h.patch(f.ID, `{"tags":["T"]}`).want(200)
		h.create(`{"key":"b"}`)
		var log activity
		h.do("GET", path(f.ID)+"activity/", "").want(200).into(&log)
		if log.TotalCount != 2 || len(log.Results) != 2 || log.Next != nil || log.Previous != nil {
			t.Fatalf("log: %+v", log)
		}
		e := log.Results[0]
		if e.Activity != "updated" || e.User.Email != "bob@corp.test" || e.Scope != "FeatureFlag" || e.ItemID != "1" || e.Detail.Name != "a" || len(e.Detail.Changes) != 2 {
			t.Errorf("entry: %+v", e)
		}
		c := e.Detail.Changes[0]
		if c.Type != "FeatureFlag" || c.Action != "changed" || c.Field != "filters" || string(c.Before) != `{}` ||
			string(c.After) != `{"groups":[{"properties":[],"rollout_percentage":60}]}` {
			t.Errorf("change: %+v", c)
		}
		if first := log.Results[1]; first.Activity != "created" || first.Detail.Changes != nil || first.User.FirstName != "Ada" {
			t.Errorf("first entry: %+v", first)
		}
		h.do("GET", base+"activity/?limit=1&page=2", "").want(200).into(&log)
		if log.TotalCount != 3 || len(log.Results) != 1 || log.Next == nil || log.Previous == nil ||
			!strings.Contains(*log.Next, "page=3") || !strings.Contains(*log.Next, "limit=1") || !strings.HasPrefix(*log.Next, h.url) {
			t.Errorf("page: %+v", log)
		}
		h.do("GET", base+"activity/?page=50", "").want(200).into(&log)
		if len(log.Results) != 0 || log.Results == nil {
			t.Errorf("beyond the end: %+v", log)
		}
		h.do("GET", base+"activity/?page=0", "").fails(400, "min_value", "page")
		h.do("GET", base+"activity/?limit=x", "").fails(400, "invalid_input", "limit")
		h.do("GET", path(77)+"activity/", "").want(404)
	})
}

func TestLinkDashboards(t *testing.T) {
	h := onOne(t)
	a := h.create(`{"key":"a"}`)
	b := h.create(`{"key":"b","analytics_dashboards":[` + itoa(*a.UsageDashboard) + `]}`)
	if len(b.AnalyticsDashboards) != 1 {
		t.Errorf("dashboards: %v", b.AnalyticsDashboards)
	}
	h.do("POST", "/api/projects/2/feature_flags/", `{"key":"c","analytics_dashboards":[1]}`).fails(400, "does_not_exist", "analytics_dashboards")
	h.patch(b.ID, `{"analytics_dashboards":["x"]}`).fails(400, "incorrect_type", "analytics_dashboards")
}

func TestHeadNeedsAKey(t *testing.T) {
	h := onOne(t)
	res, err := http.Head(h.url + base)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("HEAD without a key: %d", res.StatusCode)
	}
}

func TestConcurrentWrites(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		f := h.create(`{"key":"a"}`)
		var mu sync.Mutex
		created, patched := map[int]int{}, map[int]int{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				c := h.do("POST", base, `{"key":"same"}`).status
				p := h.patch(f.ID, `{"version":1,"name":"x`+itoa(time.Now().UnixNano())+`"}`).status
				mu.Lock()
				defer mu.Unlock()
				created[c]++
				patched[p]++
			})
		}
		wg.Wait()
		if created[201] != 1 || created[400] != 7 || patched[200] != 1 || patched[409] != 7 {
			t.Errorf("got status codes %v of creates and %v of patches", created, patched)
		}
	})
}

func TestDeletedFlagsAreListedApart(t *testing.T) {
	onBoth(t, func(t *testing.T, h *server) {
		gone := h.create(`{"key":"gone","tags":["web"]}`)
		h.create(`{"key":"kept"}`)
		h.patch(gone.ID, `{"deleted":true}`)
		listed := func(query string) string {
			t.Helper()
			var p page[flag]
			h.do("GET", base+query, "").want(200).into(&p)
			var keys []string
			for _, f := range p.Results {
				keys = append(keys, f.Key)
			}
			return strings.Join(keys, " ")
		}
		for query, want := range map[string]string{
			"": "kept", "?deleted=false": "kept", "?deleted=true": "gone", "?deleted=true&search=kep": "", "?deleted=true&tags=%5B%22web%22%5D": "gone",
		} {
			if got := listed(query); got != want {
				t.Errorf("GET %s lists %q, want %q", query, got, want)
			}
		}
		h.patch(gone.ID, `{"deleted":false}`)
		if got := listed("?deleted=true"); got != "" {
			t.Errorf("a restored flag is listed as deleted: %q", got)
		}
	})
}

package app_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// wants sends a request as the first operator and checks the status and parts of the
// answer.
func (w *accessWorld) wants(t *testing.T, method, path, body string, status int, parts ...string) string {
	t.Helper()
	got, answer := w.as(t, w.PersonalKey, method, path, body)
	if got != status {
		t.Fatalf("%s %s: %d %.400s, want %d", method, path, got, answer, status)
	}
	for _, part := range parts {
		if !strings.Contains(answer, part) {
			t.Errorf("%s %s: %.600s\n\tlacks %s", method, path, answer, part)
		}
	}
	return answer
}

// TestManagementPaths checks the paths for several flags, for other projects and for
// dashboards.
func TestManagementPaths(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	const base = "/api/projects/1"
	f := w.objects["feature_flags/:id"]
	other := w.create(t, base+"/feature_flags", fmt.Sprintf(`{"key":"child","filters":{"groups":[{"properties":[{"key":%q,"type":"flag","operator":"flag_evaluates_to","value":true}],"rollout_percentage":100}]}}`, f))

	t.Run("flags", func(t *testing.T) {
		w.wants(t, "GET", base+"/feature_flags/"+f, "", 200, `"last_modified_by":{"id":`, `"user_access_level":"editor"`, `"last_called_at":null`, `"surveys":[]`)
		w.wants(t, "POST", base+"/feature_flags/bulk_keys/", fmt.Sprintf(`{"ids":[%s,%q,%s]}`, f, other, absent), 200, `"`+f+`":"f"`, `"`+other+`":"child"`)
		w.wants(t, "GET", base+"/feature_flags/matching_ids/?search=chil", "", 200, `{"ids":[`+other+`],"total":1}`)
		w.wants(t, "GET", base+"/feature_flags/"+f+"/dependent_flags/", "", 200, `[{"id":`+other+`,"key":"child"`)
		w.wants(t, "PATCH", base+"/feature_flags/"+f, `{"name":"renamed"}`, 200)
		w.wants(t, "GET", base+"/feature_flags/"+f+"/versions/1/", "", 200, `"name":""`, `"version":1,`)
		w.wants(t, "GET", base+"/feature_flags/"+f+"/versions/9/", "", 404)
		w.wants(t, "POST", base+"/feature_flags/bulk_delete/", fmt.Sprintf(`{"ids":[%s,%s,"x"]}`, f, absent), 200, `"deleted":[]`, `"id":`+f, `"id":"x"`)
		w.wants(t, "POST", base+"/feature_flags/bulk_delete/", fmt.Sprintf(`{"ids":[%s]}`, other), 200, `"deleted":[{"id":`+other+`,"key":"child"}]`, `"errors":[]`)
	})
	t.Run("copies", func(t *testing.T) {
		w.wants(t, "POST", "/api/organizations/@current/feature_flags/copy_flags/",
			fmt.Sprintf(`{"feature_flag_key":"f","from_project":1,"target_project_ids":[%d,%d]}`, w.second.ID, w.foreign.ID), 200,
			`"success":[{"id":`, fmt.Sprintf(`"failed":[{"project_id":%d,"error_message":"Project not found."}]`, w.foreign.ID))
		got := w.wants(t, "GET", "/api/organizations/@current/feature_flags/f/", "", 200)
		if strings.Count(got, `"flag_id"`) != 2 {
			t.Errorf("flags with the key in projects: %s", got)
		}
	})
	t.Run("copies of encrypted payloads", func(t *testing.T) {
		conf := w.create(t, base+"/feature_flags", `{"key":"conf","is_remote_configuration":true,"has_encrypted_payloads":true,"filters":{"groups":[{"properties":[]}],"payloads":{"true":"\"s3cret\""}}}`)
		copied := w.wants(t, "POST", "/api/organizations/@current/feature_flags/copy_flags/",
			fmt.Sprintf(`{"feature_flag_key":"conf","from_project":1,"target_project_ids":[%d]}`, w.second.ID), 200, `"failed":[]`, `"has_encrypted_payloads":true`, "(encrypted)")
		second := fmt.Sprintf("/api/projects/%d/feature_flags/conf/remote_config/", w.second.ID)
		if got := w.wants(t, "GET", second, "", 200); strings.TrimSpace(got) != `"\"s3cret\""` {
			t.Errorf("the copy has the payload %s", got)
		}
		for _, path := range []string{"/api/organizations/@current/feature_flags/conf/", base + "/feature_flags/" + conf + "/versions/1/"} {
			copied += w.wants(t, "GET", path, "", 200)
		}
		if strings.Contains(copied, "s3cret") || strings.Contains(copied, "guidon:sealed") {
			t.Errorf("an answer has the payload: %s", copied)
		}
	})
	t.Run("projects", func(t *testing.T) {
		w.wants(t, "GET", "/api/organizations/@current/projects/", "", 200, `"name":"Second"`)
		id := w.create(t, "/api/organizations/@current/projects/", `{"name":"Third"}`)
		w.wants(t, "PATCH", "/api/organizations/@current/projects/"+id+"/", `{"name":"Fourth"}`, 200, `"name":"Fourth"`)
		w.wants(t, "DELETE", "/api/organizations/@current/projects/"+id+"/", "", 204)
	})
	t.Run("dashboards", func(t *testing.T) {
		id := w.create(t, base+"/dashboards/", `{"name":"Mine","tags":["a"]}`)
		w.wants(t, "PATCH", base+"/dashboards/"+id+"/", `{"deleted":true}`, 200, `"deleted":true`)
		w.wants(t, "GET", base+"/dashboards/"+id+"/", "", 200, `"deleted":true`)
		w.wants(t, "PATCH", base+"/dashboards/"+id+"/", `{"deleted":false}`, 200, `"deleted":false`)
	})
	t.Run("a cohort that an action uses", func(t *testing.T) {
		cohort := w.objects["cohorts/:id"]
		w.create(t, base+"/actions", `{"name":"members","steps":[{"event":"e","properties":[{"key":"id","type":"cohort","value":`+cohort+`}]}]}`)
		w.wants(t, "PATCH", base+"/cohorts/"+cohort, `{"deleted":true}`, 400, "action members")
	})
	t.Run("persons", func(t *testing.T) {
		w.wants(t, "GET", base+"/persons/?email=nobody@example.com", "", 200, `"count":0`)
		w.wants(t, "GET", base+"/persons/?email=", "", 400, "blank")
		w.wants(t, "GET", base+"/persons/?is_identified=x", "", 400)
		w.wants(t, "GET", base+"/groups/find/?group_type_index=0", "", 400, `"attr":"group_key"`)
	})
	t.Run("counts of a time", func(t *testing.T) {
		action := w.objects["actions/:id"]
		w.wants(t, "GET", base+"/actions/"+action+"/count/?date_from=all", "", 200, `"count":`)
		w.wants(t, "GET", base+"/actions/"+action+"/series/?date_from=-9y&interval=year", "", 200, `"interval":"year"`)
		w.wants(t, "GET", base+"/actions/"+action+"/count/?date_from=x", "", 400, `"attr":"date_from"`)
	})
}

// TestScheduledChanges checks that scheduled changes are applied once at their time,
// under the rules of flags.
func TestScheduledChanges(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	const base = "/api/projects/1"
	f := w.objects["feature_flags/:id"]
	schedule := func(in time.Duration, payload string) string {
		return w.create(t, base+"/scheduled_changes/", fmt.Sprintf(`{"record_id":%q,"model_name":"FeatureFlag","scheduled_at":%q,"payload":%s}`,
			f, time.Now().Add(in).Format(time.RFC3339Nano), payload))
	}
	off := schedule(time.Second, `{"operation":"update_status","value":false}`)
	more := schedule(time.Second, `{"operation":"add_release_condition","value":{"groups":[{"properties":[],"rollout_percentage":7}]}}`)
	bad := schedule(time.Second, `{"operation":"update_variants","value":{"variants":[{"key":"a","rollout_percentage":12}]}}`)
	later := schedule(time.Hour, `{"operation":"update_status","value":true}`)
	for _, id := range []string{off, more, bad} {
		waitFor(t, "scheduled change "+id, func() bool {
			_, answer := w.as(t, w.PersonalKey, "GET", base+"/scheduled_changes/"+id+"/", "")
			return !strings.Contains(answer, `"executed_at":null`)
		})
	}
	w.wants(t, "GET", base+"/feature_flags/"+f, "", 200, `"active":false`, `"rollout_percentage":7`)
	w.wants(t, "GET", base+"/feature_flags/"+f+"/activity/", "", 200, `"job_type":"scheduled_change"`, `"job_id":"`+off+`"`)
	w.wants(t, "GET", base+"/scheduled_changes/"+off+"/", "", 200, `"failure_reason":null`)
	if answer := w.wants(t, "GET", base+"/scheduled_changes/"+bad+"/", "", 200); strings.Contains(answer, `"failure_reason":null`) {
		t.Errorf("a change that breaks a rule: %s", answer)
	}
	w.wants(t, "DELETE", base+"/scheduled_changes/"+off+"/", "", 409)
	w.wants(t, "DELETE", base+"/scheduled_changes/"+later+"/", "", 204)
	w.wants(t, "GET", base+"/scheduled_changes/?record_id="+f, "", 200, `"count":3`)
	for _, payload := range []string{`{"operation":"x"}`, `{"operation":"update_status","value":"on"}`, `[]`} {
		w.wants(t, "POST", base+"/scheduled_changes/", fmt.Sprintf(`{"record_id":%s,"model_name":"FeatureFlag","scheduled_at":"2099-01-01T00:00:00Z","payload":%s}`, f, payload), 400)
	}
	w.wants(t, "POST", base+"/scheduled_changes/", fmt.Sprintf(`{"record_id":%s,"model_name":"FeatureFlag","scheduled_at":"2020-01-01T00:00:00Z","payload":{"operation":"update_status","value":true}}`, f), 400, "scheduled_at")
}

package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// An admin sets the rules of a project, sees before what they delete, and reads in
// counts since when events are there. Too old events warn and are not stored.
func TestRetentionOfAProject(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	old, recent := time.Now().Add(-50*24*time.Hour).UTC(), time.Now().Add(-time.Hour).UTC()
	send := func(id string, at time.Time) {
		t.Helper()
		body := fmt.Sprintf(`{"api_key":%q,"batch":[{"event":"paid","distinct_id":"u","uuid":%q,"timestamp":%q}]}`, w.ProjectKey, id, at.Format(time.RFC3339))
		res, err := http.Post(w.URL+"/batch/", "application/json", strings.NewReader(body))
		check(t, err)
		_ = res.Body.Close()
	}
	send("0190e7a8-0000-7000-8000-000000000001", old)
	send("0190e7a8-0000-7000-8000-000000000002", recent)
	path := fmt.Sprintf("/api/projects/%d/", w.First.Project.ID)
	until := func(path, part string) {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			got := w.wants(t, "GET", path, "", 200)
			if strings.Contains(got, part) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s never had %s: %s", path, part, got)
			}
		}
	}
	until(path+"events/?event=paid", "000000000001")
	until(path+"events/?event=paid", "000000000002")
	var action struct{ ID int }
	check(t, json.Unmarshal([]byte(w.wants(t, "POST", path+"actions/", `{"name":"paid","steps":[{"event":"paid"}]}`, 201)), &action))
	count := fmt.Sprintf("%sactions/%d/count/", path, action.ID)
	until(count, `"count":2`)
	w.wants(t, "POST", path+"retention/preview/", `{"keep":"30d"}`, 200, `"events":1`, recent.Format("2006-01-02T15:04"))
	w.wants(t, "PATCH", path+"retention/", `{"keep":"30"}`, 400, `"attr":"keep"`)
	w.wants(t, "PATCH", path+"retention/", `{"kept":"30d"}`, 400)
	w.wants(t, "PATCH", path+"retention/", `{"events":{"a\u0000b":"30d"}}`, 400, `null_characters_not_allowed`, `"attr":"events"`)
	w.wants(t, "PATCH", path+"retention/", `{"keep":"30d","events":{"rare":"0"}}`, 200, `"keep":"30d"`, `"rare":"0"`)
	until(path+"retention/", `"deleted_events":1`)
	until(count, `"count":1,"retained_from":`)
	w.wants(t, "GET", path+"activity_log/", "", 200, "retention")
	send("0190e7a8-0000-7000-8000-000000000003", old)
	until(path+"ingestion_warnings/", "event_too_old")
	if got := w.wants(t, "GET", path+"events/?event=paid", "", 200); strings.Contains(got, "000000000003") {
		t.Error("an event that is too old was stored")
	}
	w.wants(t, "PATCH", path+"retention/", `{"keep":null,"events":{"rare":null}}`, 200, `"keep":null`, `"events":{}`)
}

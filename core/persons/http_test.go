package persons_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/web/webtest"
)

func TestHTTP(t *testing.T) {
	s := service(t, dbtest.SQLite(t))
	process(t, s, evs(
		`$set u1 {"$set":{"email":"ann@example.com","n":1.0}}`,
		`$identify u2 {"$anon_distinct_id":"anon"}`,
		`$groupidentify u2 {"$group_type":"company","$group_key":"acme","$group_set":{"name":"ACME"}}`,
	))
	base := webtest.Serve(t, webtest.DefaultKeys(), persons.NewHTTP(s, nil, nil, nil))
	const (
		ann = `{"id":1,"uuid":"UUID","name":"ann@example.com","distinct_ids":["u1"],` +
			`"properties":{"email":"ann@example.com","n":1.0,"$creator_event_uuid":"UUID"},` +
			`"created_at":"2026-03-01T12:00:00.000000Z","is_identified":false,"last_seen_at":null}`
		bob = `{"id":2,"uuid":"UUID","name":"u2","distinct_ids":["u2","anon"],` +
			`"properties":{"$creator_event_uuid":"UUID"},"created_at":"2026-03-01T12:00:01.000000Z","is_identified":true,"last_seen_at":null}`
		acme = `{"group_type_index":0,"group_key":"acme","group_properties":{"name":"ACME"},"created_at":"2026-03-01T12:00:02.000000Z"}`
		none = `{"count":0,"next":null,"previous":null,"results":[]}`
	)
	refused := func(attr, code, detail string) string {
		return `400 {"type":"validation_error","code":"` + code + `","detail":"` + detail + `","attr":"` + attr + `"}`
	}
	missing := `404 {"type":"invalid_request","code":"not_found","detail":"Not found.","attr":null}`
	for _, c := range []struct{ name, method, path, body, want string }{
		{"newest first", "GET", "/persons/", "", `200 {"count":2,"next":null,"previous":null,"results":[` + bob + "," + ann + `]}`},
		{"a page", "GET", "/persons/?limit=1&offset=1&search=u", "",
			`200 {"count":2,"next":null,"previous":"BASE/persons/?search=u&limit=1","results":[` + ann + `]}`},
		{"by distinct id", "GET", "/persons/?distinct_id=anon", "", `200 {"count":1,"next":null,"previous":null,"results":[` + bob + `]}`},
		{"by a property", "GET", `/persons/?properties=[{"key":"n","value":"1.0","type":"person"}]`, "",
			`200 {"count":1,"next":null,"previous":null,"results":[` + ann + `]}`},
		{"by a list of nothing", "GET", `/persons/?properties=[]&search=zzz`, "", `200 ` + none},
		{"by something that is no list", "GET", `/persons/?properties={}`, "",
			refused("properties", "invalid_input", "Not a JSON list of property filters.")},
		{"by a property of something else", "GET", `/persons/?properties=[{"key":"n","value":1,"type":"cohort"}]`, "",
			refused("properties", "invalid_input", "Only person properties can be asked for here, not cohort.")},
		{"by number", "GET", "/persons/1/", "", "200 " + ann},
		{"by uuid", "GET", "/persons/" + persons.PersonUUID(1, "u2") + "/", "", "200 " + bob},
		{"unknown", "GET", "/persons/9/", "", missing},
		{"neither number nor uuid", "GET", "/persons/x/", "", missing},
		{"groups need a type", "GET", "/groups/", "", refused("group_type_index", "required", "This field is required.")},
		{"a type is a number", "GET", "/groups/?group_type_index=x", "", refused("group_type_index", "invalid_input", "A valid integer is required.")},
		{"groups", "GET", "/groups/?group_type_index=0", "", `200 {"count":1,"next":null,"previous":null,"results":[` + acme + `]}`},
		{"groups of a type that is not there", "GET", "/groups/?group_type_index=4", "", `200 ` + none},
		{"one group", "GET", "/groups/find/?group_type_index=0&group_key=acme", "", "200 " + acme},
		{"an unknown group", "GET", "/groups/find/?group_type_index=0&group_key=x", "", missing},
		{"rename a type", "PATCH", "/groups_types/0/", `{"name_singular":"Firm","name_plural":null}`,
			`200 {"group_type":"company","group_type_index":0,"name_singular":"Firm","name_plural":null,"created_at":"2026-03-01T12:00:02.000000Z"}`},
		{"a name is not blank", "PATCH", "/groups_types/0/", `{"group_type":" "}`, refused("group_type", "blank", "This field may not be blank.")},
		{"rename a type that is not there", "PATCH", "/groups_types/4/", `{}`, missing},
		{"types", "GET", "/groups_types/", "",
			`200 [{"group_type":"company","group_type_index":0,"name_singular":"Firm","name_plural":null,"created_at":"2026-03-01T12:00:02.000000Z"}]`},
		{"delete a type", "DELETE", "/groups_types/0/", "", "204 "},
		{"no types", "GET", "/groups_types/", "", "200 []"},
		{"split by a foreign id", "POST", "/persons/2/split/", `{"main_distinct_id":"u1"}`,
			refused("main_distinct_id", "invalid_input", "The person has no such distinct id.")},
		{"split", "POST", "/persons/2/split/", `{"main_distinct_id":"u2"}`, `201 {"success":true}`},
		{"after the split", "GET", "/persons/?search=anon", "", `200 {"count":1,"next":null,"previous":null,"results":[` +
			`{"id":3,"uuid":"UUID","name":"anon","distinct_ids":["anon"],"properties":{},"created_at":"2026-03-01T12:00:01.000000Z","is_identified":false,"last_seen_at":null}]}`},
		{"erase without a hook", "DELETE", "/persons/1/?delete_events=true", "",
			`503 {"type":"server_error","code":"erasure_unavailable","detail":"Events cannot be erased here.","attr":null}`},
		{"delete", "DELETE", "/persons/1/", "", "204 "},
		{"delete again", "DELETE", "/persons/1/", "", missing},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, c.method, base+"/api/projects/1"+strings.ReplaceAll(c.path, `"`, "%22"), c.body)
			got = strings.ReplaceAll(uuids.ReplaceAllString(got, "UUID"), base+"/api/projects/1", "BASE")
			if got != c.want {
				t.Fatalf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
}

// The Go client sends the zero time for an event without a time.
func TestZeroCreationTimeIsNotNull(t *testing.T) {
	s := service(t, dbtest.SQLite(t))
	events := evs(
		`$set u1 {"$set":{"a":1}}`,
		`$groupidentify u1 {"$group_type":"company","$group_key":"acme","$group_set":{"a":1}}`,
	)
	for _, e := range events {
		e.Timestamp = time.Time{}
	}
	process(t, s, events)
	base := webtest.Serve(t, webtest.DefaultKeys(), persons.NewHTTP(s, nil, nil, nil)) + "/api/projects/1"
	for _, path := range []string{"/persons/", "/groups/?group_type_index=0", "/groups_types/"} {
		if got := ask(t, "GET", base+path, ""); !strings.Contains(got, `"created_at":"0001-01-01T00:00:00.000000Z"`) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// ask is the status and the body of an answer.
func ask(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer phx_test")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Status[:3] + " " + string(answer)
}

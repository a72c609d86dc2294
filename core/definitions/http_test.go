package definitions_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/definitions"
	"github.com/guidonhq/guidon/core/web/webtest"
)

var (
	uuids  = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	recent = regexp.MustCompile(`"20\d\d-[0-9:T.-]+Z"`)
)

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

func TestHTTP(t *testing.T) {
	d := dbtest.SQLite(t)
	s := service(d, definitions.DefaultConfig())
	process(t, d, s, ev(0, "paid", `{"amount":1,"$lib":"web","$set":{"email":"a"}}`), ev(0, "$pageview", `{}`))
	event, err := s.EventByName(t.Context(), 1, "paid")
	if err != nil {
		t.Fatal(err)
	}
	properties, _, err := s.Find(t.Context(), 1, definitions.Filter{Kind: definitions.EventProperty, Search: "amount"}, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	base := webtest.Serve(t, webtest.DefaultKeys(), definitions.NewHTTP(s)) + "/api/projects/1"
	replace := strings.NewReplacer("EVENT", "/event_definitions/"+event.ID+"/", "PROPERTY", "/property_definitions/"+properties[0].ID+"/")
	const (
		said   = `"created_at":TIME,"last_seen_at":TIME,"updated_at":TIME,"updated_by":null,`
		silent = `"created_at":TIME,"last_seen_at":TIME,"updated_at":null,"updated_by":null,`
		fresh  = silent + `"verified":false,"verified_at":null,"verified_by":null,"hidden":false`
		amount = `{"id":"UUID","name":"amount","description":"","tags":[],` + fresh +
			`,"is_numerical":true,"property_type":"Numeric","type":"event","group_type_index":null,"is_seen_on_filtered_events":null}`
		missing = `404 {"type":"invalid_request","code":"not_found","detail":"Not found.","attr":null}`
	)
	page := func(count, results string) string {
		return `200 {"count":` + count + `,"next":null,"previous":null,"results":[` + results + `]}`
	}
	refused := func(attr, code, detail string) string {
		return `400 {"type":"validation_error","code":"` + code + `","detail":"` + detail + `","attr":"` + attr + `"}`
	}
	for _, c := range []struct{ name, method, path, body, want string }{
		{"an event", "GET", "EVENT", "", `200 {"id":"UUID","name":"paid","description":"","tags":[],` + fresh + `,"last_updated_at":null,"owner":null,"is_action":false}`},
		{"a property", "GET", "PROPERTY", "", "200 " + amount},
		{"an event is no property", "GET", strings.Replace("EVENT", "EVENT", "/property_definitions/"+event.ID, 1), "", missing},
		{"no id", "GET", "/event_definitions/7/", "", missing},
		{"a name has to be given", "GET", "/event_definitions/by_name/", "", refused("name", "required", "This field is required.")},
		{"some properties", "GET", "/property_definitions/?properties=amount,nothing", "", page("1", amount)},
		{"some properties as a list", "GET", `/property_definitions/?properties=["amount"]`, "", page("1", amount)},
		{"a broken list", "GET", `/property_definitions/?properties=["amount"`, "", refused("properties", "invalid_input", "Not a JSON list of names.")},
		{"all but some", "GET", "/property_definitions/?excluded_properties=$lib", "", page("1", amount)},
		{"numbers", "GET", "/property_definitions/?is_numerical=true", "", page("1", amount)},
		{"by type", "GET", "/property_definitions/?property_type=Numeric,Boolean", "", page("1", amount)},
		{"no sessions", "GET", "/property_definitions/?type=session", "", page("0", "")},
		{"an unknown type", "GET", "/property_definitions/?type=planet", "",
			refused("type", "invalid_choice", `\"planet\" is not a valid choice: event, person, group or session.`)},
		{"neither yes nor no", "GET", "/property_definitions/?is_numerical=perhaps", "", refused("is_numerical", "invalid_input", "Must be a valid boolean.")},
		{"an unknown order", "GET", "/event_definitions/?ordering=colour", "", refused("ordering", "invalid_choice", `Lists cannot be ordered by \"colour\".`)},
		{"describe", "PATCH", "EVENT", `{"description":"money came in","tags":[" Money ","money",""]}`,
			`200 {"id":"UUID","name":"paid","description":"money came in","tags":["money"],` + said +
				`"verified":false,"verified_at":null,"verified_by":null,"hidden":false,"last_updated_at":TIME,"owner":null,"is_action":false}`},
		{"verify", "PATCH", "EVENT", `{"verified":true}`,
			`200 {"id":"UUID","name":"paid","description":"money came in","tags":["money"],` + said +
				`"verified":true,"verified_at":TIME,"verified_by":null,"hidden":false,"last_updated_at":TIME,"owner":null,"is_action":false}`},
		{"no more", "PATCH", "EVENT", `{"verified":false,"tags":[],"description":""}`,
			`200 {"id":"UUID","name":"paid","description":"","tags":[],` + said +
				`"verified":false,"verified_at":null,"verified_by":null,"hidden":false,"last_updated_at":TIME,"owner":null,"is_action":false}`},
		{"hidden and verified", "PATCH", "EVENT", `{"verified":true,"hidden":true}`,
			refused("hidden", "invalid_input", "A definition cannot be both hidden and verified.")},
		{"tags are texts", "PATCH", "EVENT", `{"tags":"money"}`, refused("tags", "not_a_list", `Expected a list of items but got type \"str\".`)},
		{"say which type it has", "PATCH", "PROPERTY", `{"property_type":"String"}`, `200 ` + strings.NewReplacer(
			`"is_numerical":true,"property_type":"Numeric"`, `"is_numerical":false,"property_type":"String"`, silent, said).Replace(amount)},
		{"a type that is none", "PATCH", "PROPERTY", `{"property_type":"Colour"}`,
			refused("property_type", "invalid_choice", "A property is String, Numeric, Boolean or DateTime.")},
		{"hide", "PATCH", "PROPERTY", `{"hidden":true,"property_type":null}`, `200 ` + strings.NewReplacer(
			`"is_numerical":true,"property_type":"Numeric"`, `"is_numerical":false,"property_type":null`, silent, said, `"hidden":false`, `"hidden":true`).Replace(amount)},
		{"not in the list then", "GET", "/property_definitions/?exclude_hidden=true&search=amount", "", page("0", "")},
		{"forget", "DELETE", "EVENT", "", "204 "},
		{"forget again", "DELETE", "EVENT", "", missing},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, c.method, base+strings.ReplaceAll(replace.Replace(c.path), `"`, "%22"), c.body)
			got = recent.ReplaceAllString(uuids.ReplaceAllString(got, "UUID"), "TIME")
			if got != c.want {
				t.Fatalf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
	// What was forgotten comes back when it is seen again, in the same hour too.
	process(t, d, s, ev(0, "paid", `{}`))
	if _, err := s.EventByName(t.Context(), 1, "paid"); err != nil {
		t.Errorf("it did not come back: %v", err)
	}
}

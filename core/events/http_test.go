package events_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events/eventapi"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

func TestHTTP(t *testing.T) {
	s := service(t, dbtest.SQLite(t))
	store(t, s, ev(1, "a", "u1", `{"n":1.0}`), ev(2, "b", "u 2", `{"$current_url":"https://x/?a&b<c>"}`), ev(3, "a", "u1", `{}`))
	base := webtest.Serve(t, webtest.DefaultKeys(), eventapi.NewHTTP(s, nil))
	for _, c := range []struct{ name, path, want string }{
		{"newest first, next is null at the end", "/api/projects/1/events/",
			`200 {"next":null,"results":[3 2 1]}`},
		{"by name", "/api/projects/@current/events/?event=a", `200 {"next":null,"results":[3 1]}`},
		{"by distinct id", "/api/projects/1/events?distinct_id=u%202", `200 {"next":null,"results":[2]}`},
		{"after a time", "/api/projects/1/events/?after=2026-03-01T12:02:00Z", `200 {"next":null,"results":[3]}`},
		{"before a time with a plus sign that became a space", "/api/projects/1/events/?before=2026-03-01T14:02:00+02:00",
			`200 {"next":null,"results":[1]}`},
		{"before a date", "/api/projects/1/events/?before=2026-03-01", `200 {"next":null,"results":[]}`},
		{"a time that is none", "/api/projects/1/events/?after=yesterday",
			`400 {"type":"validation_error","code":"invalid_input","detail":"Not a time: yesterday. Write 2026-03-01 or 2026-03-01T12:00:00Z.","attr":"after"}`},
		{"a cursor that is none", "/api/projects/1/events/?cursor=x",
			`400 {"type":"validation_error","code":"invalid_input","detail":"Not a cursor. Follow the next link of the page before.","attr":"cursor"}`},
		{"one event", "/api/projects/1/events/" + id(1) + "/", `200 {"id":"` + id(1) + `","uuid":"` + id(1) + `","project_id":1,"event":"a","distinct_id":"u1","timestamp":"2026-03-01T12:01:00.000000Z",` +
			`"received_at":"2026-03-01T12:01:01.000000Z","properties":{"n":1.0},"elements":[],"person":null}`},
		{"an unknown event", "/api/projects/1/events/" + id(9) + "/",
			`404 {"type":"invalid_request","code":"not_found","detail":"Not found.","attr":null}`},
		{"a uuid that is none", "/api/projects/1/events/x/",
			`404 {"type":"invalid_request","code":"not_found","detail":"Not found.","attr":null}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shorten(get(t, base+c.path)); got != c.want {
				t.Fatalf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("next leads through the whole list", func(t *testing.T) {
		var seen []string
		for url := base + "/api/projects/1/events/?limit=2"; url != ""; {
			var page struct {
				Next    string
				Results []sdk.Event
			}
			if err := json.Unmarshal([]byte(get(t, url)[4:]), &page); err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Results {
				seen = append(seen, e.UUID)
			}
			url = page.Next
		}
		if got := strings.Join(seen, " "); got != id(3)+" "+id(2)+" "+id(1) {
			t.Fatalf("saw %s", got)
		}
	})
}

// get is the status and the body of an answer.
func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer phx_test")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.Status[:3] + " " + string(body)
}

// shorten replaces each event of a list by its number.
func shorten(answer string) string {
	head, list, found := strings.Cut(answer, `"results":[`)
	if !found || list == "]}" {
		return answer
	}
	var got []sdk.Event
	if json.Unmarshal([]byte("["+strings.TrimSuffix(list, "}")), &got) != nil {
		return answer
	}
	var numbers []string
	for _, e := range got {
		for n, name := range []string{id(0), id(1), id(2), id(3)} {
			if name == e.UUID {
				numbers = append(numbers, string(rune('0'+n)))
			}
		}
	}
	return head + `"results":[` + strings.Join(numbers, " ") + "]}"
}

package actions_test

import (
	"encoding/csv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/actions"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// fetched is a GET of a management path, with a header.
func fetched(t *testing.T, url, accept string) (int, string, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer phx_test")
	req.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Content-Type"), string(body)
}

func TestActionsCSVEscapesFormulas(t *testing.T) {
	t.Parallel()
	s, _ := service(t, dbtest.SQLite(t))
	for _, name := range []string{"=HYPERLINK(1)", "plain, with a comma", "@x"} {
		if _, err := s.Create(t.Context(), ada, shop, actions.Input{Name: text(name), Description: text("-1"), Steps: steps("a", "b")}); err != nil {
			t.Fatal(err)
		}
	}
	base := webtest.Serve(t, webtest.DefaultKeys(), actions.NewHTTP(s))
	if code, _, body := fetched(t, base+"/api/projects/1/actions/?format=csv&search=nothing", "*/*"); code != 200 ||
		!strings.HasPrefix(body, "id,name,description,tags,post_to_chat,chat_message_format,") || strings.Count(body, "\r\n") != 1 {
		t.Errorf("a list without actions: %d %q", code, body)
	}
	for path, accept := range map[string]string{"?format=csv": "application/json", "": "text/csv"} {
		code, kind, body := fetched(t, base+"/api/projects/1/actions/"+path, accept)
		if code != 200 || kind != "text/csv; charset=utf-8" {
			t.Fatalf("%d %s", code, kind)
		}
		rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
		if err != nil || len(rows) != 4 {
			t.Fatalf("%v: %s", err, body)
		}
		head := strings.Join(rows[0], ",")
		if !strings.HasPrefix(head, "id,name,description,tags,post_to_chat,chat_message_format,") || !strings.Contains(head, "steps.0.event,") ||
			!strings.Contains(head, "steps.1.url_matching") {
			t.Errorf("columns %s", head)
		}
		for _, row := range rows[1:] {
			for i, cell := range row {
				if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
					t.Errorf("%s is a formula: %q", rows[0][i], cell)
				}
			}
		}
	}
	if code, kind, _ := fetched(t, base+"/api/projects/1/actions/1/", "text/html,application/json,*/*"); code != 200 || !strings.HasPrefix(kind, "application/json") {
		t.Errorf("a browser gets %d %s", code, kind)
	}
}

// changed is a PATCH of an action.
func changed(t *testing.T, url, body string) (code int, answer string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPatch, url, strings.NewReader(body))
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
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

func TestVersionRefusesLostUpdates(t *testing.T) {
	t.Parallel()
	s, _ := service(t, dbtest.SQLite(t))
	a, err := s.Create(t.Context(), ada, shop, actions.Input{Name: text("paid"), Steps: steps("paid")})
	if err != nil {
		t.Fatal(err)
	}
	url := webtest.Serve(t, webtest.DefaultKeys(), actions.NewHTTP(s)) + "/api/projects/1/actions/" + strconv.FormatInt(a.ID, 10) + "/"
	for _, c := range []struct {
		body string
		code int
		want string
	}{
		{`{"name": "first", "version": 1}`, 200, `"version":2`},
		{`{"name": "second", "version": 1}`, 409, "it is at version 2, you sent version 1"},
		{`{"name": "third"}`, 200, `"version":3`},
		{`{"name": "fourth", "version": null}`, 200, `"version":4`},
		{`{"name": "fourth", "version": 4}`, 200, `"version":4`},
	} {
		if code, answer := changed(t, url, c.body); code != c.code || !strings.Contains(answer, c.want) {
			t.Errorf("%s: %d %s, want %d with %s", c.body, code, answer, c.code, c.want)
		}
	}
	if a, err = s.Get(t.Context(), 1, a.ID); err != nil || a.Name != "fourth" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestListOfDeletedActions(t *testing.T) {
	t.Parallel()
	s, _ := service(t, dbtest.SQLite(t))
	for _, name := range []string{"kept", "gone"} {
		if _, err := s.Create(t.Context(), ada, shop, actions.Input{Name: text(name), Steps: steps("a")}); err != nil {
			t.Fatal(err)
		}
	}
	base := webtest.Serve(t, webtest.DefaultKeys(), actions.NewHTTP(s)) + "/api/projects/1/actions/"
	if code, answer := changed(t, base+"2/", `{"deleted": true}`); code != 200 {
		t.Fatalf("%d %s", code, answer)
	}
	for query, want := range map[string]string{"": "kept", "?deleted=false": "kept", "?deleted=true": "gone"} {
		code, _, answer := fetched(t, base+query, "application/json")
		if code != 200 || !strings.Contains(answer, `"count":1`) || !strings.Contains(answer, `"name":"`+want+`"`) {
			t.Errorf("%s: %d %s, want %s", query, code, answer, want)
		}
	}
}

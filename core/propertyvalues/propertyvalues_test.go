package propertyvalues_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/core/propertyvalues"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func serve(t *testing.T, d *db.DB, bodies ...string) string {
	t.Helper()
	p := persons.New(persons.DefaultConfig(), d, zap.NewNop(), nil)
	e := events.New(events.DefaultConfig(), d, zap.NewNop(), nil)
	var batch []*sdk.Event
	for i, body := range bodies {
		id := fmt.Sprint("u", i)
		batch = append(batch, &sdk.Event{
			UUID: uuid.NewString(), ProjectID: 1, Name: []string{"paid", "seen"}[i%2], DistinctID: id, PersonID: persons.PersonUUID(1, id),
			Timestamp: start.Add(time.Duration(i) * time.Second), ReceivedAt: start, Properties: json.RawMessage(strings.TrimSuffix(body, "}") + `,"$set":` + body + `}`),
		})
	}
	if len(batch) > 0 {
		if _, err := p.Process(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Store(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	values := propertyvalues.New(d, p, e)
	values.SetTime(time.Minute)
	keys := webtest.DefaultKeys()
	keys.Principals["phx_persons"] = &auth.Principal{KeyID: 2, Scopes: []string{"person:read"}, User: auth.User{ID: 1}}
	keys.Principals["phx_events"] = &auth.Principal{KeyID: 3, Scopes: []string{"event:read"}, User: auth.User{ID: 1}}
	return webtest.Serve(t, keys, propertyvalues.NewHTTP(values)) + "/api/projects/1"
}

func ask(t *testing.T, address, key string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(res.StatusCode, " ", string(body))
}

func TestValues(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		long := strings.Repeat("x", 301)
		base := serve(t, d,
			`{"plan":"pro","n":1,"ok":true,"tags":["a","b",null,{"c":1},["d"],2]}`,
			`{"plan":"free","n":1.50,"ok":false,"tags":["a"],"deep":{"plan":"hidden"}}`,
			`{"plan":"pro","n":"1","ok":null,"tags":[],"long":"`+long+`","escaped":"\u003cb\u003e \"quoted\" Ünïcode"}`,
			`{"plan":"PROFESSIONAL","n":12345678901234567890,"a.b":"dotted","":"empty","x' OR 1=1":"quote","%":"percent","empty":""}`,
		)
		for query, want := range map[string]string{
			"key=plan":                         `[{"name":"pro","count":2},{"name":"PROFESSIONAL","count":1},{"name":"free","count":1}]`,
			"key=plan&value=PRO":               `[{"name":"pro","count":2},{"name":"PROFESSIONAL","count":1}]`,
			"key=n":                            `[{"name":"1","count":1},{"name":1,"count":1},{"name":1.50,"count":1},{"name":12345678901234567890,"count":1}]`,
			"key=n&value=1.5":                  `[{"name":1.50,"count":1}]`,
			"key=ok":                           `[{"name":false,"count":1},{"name":true,"count":1}]`,
			"key=ok&value=TR":                  `[{"name":true,"count":1}]`,
			"key=tags":                         `[{"name":"a","count":2},{"name":"b","count":1},{"name":2,"count":1}]`,
			"key=deep":                         `[]`,
			"key=deep.plan":                    `[]`,
			"key=long":                         `[]`,
			"key=empty":                        `[]`,
			"key=nothing":                      `[]`,
			"key=escaped&value=%C3%9CN%C3%8F":  `[{"name":"<b> \"quoted\" Ünïcode","count":1}]`,
			"key=a.b":                          `[{"name":"dotted","count":1}]`,
			"key=%25":                          `[{"name":"percent","count":1}]`,
			"key=x'%20OR%201=1":                `[{"name":"quote","count":1}]`,
			"key=plan&value=%25":               `[]`,
			"key=plan&value=_":                 `[]`,
			"key=" + strings.Repeat("y", 1000): `[]`,
			"key=plan&value=" + url.QueryEscape("😀"): `[]`,
		} {
			for _, of := range []string{"persons", "events"} {
				if got := ask(t, base+"/"+of+"/values/?"+query, "phx_test"); got != "200 "+want {
					t.Errorf("%s of %s:\ngot  %s\nwant 200 %s", query, of, got, want)
				}
			}
		}
		if got := ask(t, base+"/events/values/?key=plan&event_name=paid", "phx_test"); got != `200 [{"name":"pro","count":2}]` {
			t.Error(got)
		}
		if got := ask(t, base+"/events/values/?key=plan&event_name=other", "phx_test"); got != `200 []` {
			t.Error(got)
		}
	})
}

// Values of all persons of a small project count; the answer has the 20 most frequent.
func TestManyValues(t *testing.T) {
	var bodies []string
	for i := range 1_203 { // nine pages
		bodies = append(bodies, fmt.Sprintf(`{"id":"id-%d","kind":"kind-%d"}`, i, i%3))
	}
	base := serve(t, dbtest.SQLite(t), bodies...)
	for _, of := range []string{"persons", "events"} {
		var values []propertyvalues.Value
		_, body, _ := strings.Cut(ask(t, base+"/"+of+"/values/?key=id", "phx_test"), " ")
		if err := json.Unmarshal([]byte(body), &values); err != nil || len(values) != 20 || string(values[0].Name) != `"id-0"` && of == "persons" {
			t.Errorf("%d values of %s: %v", len(values), of, err)
		}
	}
}

func TestValuesNeedTheirScope(t *testing.T) {
	t.Parallel()
	base := serve(t, dbtest.SQLite(t))
	for path, want := range map[string]string{
		"/persons/values/":     `400 {"type":"validation_error","code":"required","detail":"This field is required.","attr":"key"}`,
		"/events/values/?key=": `400 {"type":"validation_error","code":"required","detail":"This field is required.","attr":"key"}`,
		"/events/values/?key=" + strings.Repeat("y", 1001):          `400 {"type":"validation_error","code":"max_length","detail":"Ensure this field has no more than 1000 bytes.","attr":"key"}`,
		"/persons/values/?key=a&value=" + strings.Repeat("y", 1001): `400 {"type":"validation_error","code":"max_length","detail":"Ensure this field has no more than 1000 bytes.","attr":"value"}`,
	} {
		if got := ask(t, base+path, "phx_test"); got != want {
			t.Errorf("%.60s: %s", path, got)
		}
		if got := ask(t, base+path, ""); !strings.HasPrefix(got, "401 ") {
			t.Errorf("%.60s without a key: %s", path, got)
		}
	}
	for key, allowed := range map[string]string{"phx_persons": "persons", "phx_events": "events"} {
		for _, of := range []string{"persons", "events"} {
			want := map[bool]string{true: "200 []", false: "403 "}[of == allowed]
			if got := ask(t, base+"/"+of+"/values/?key=plan", key); !strings.HasPrefix(got, want) {
				t.Errorf("%s with the key %s: %s", of, key, got)
			}
		}
	}
}

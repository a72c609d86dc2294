package ingestion_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/ingestion/capture"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/ingestion/ingestiontest"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

// memoryJournal is a journal in memory. It fails with err if that is set.
type memoryJournal struct {
	mu      sync.Mutex
	records [][]byte
	err     error
}

func (s *memoryJournal) Append(_ context.Context, data []byte) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.records = append(s.records, bytes.Clone(data))
	return uint64(len(s.records)), nil
}

func (s *memoryJournal) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = nil
}

// events decodes what is on the memoryJournal, in order.
func (s *memoryJournal) events(t *testing.T) (events []sdk.Event, said string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, data := range s.records {
		rec, err := event.ParseRecord(data)
		if err != nil {
			t.Fatal(err)
		}
		got := ingestiontest.Decode(rec)
		events, said = append(events, got.Events...), strings.TrimSpace(said+" "+ingestiontest.Kinds(got))
	}
	return events, said
}

func keys() webtest.Keys {
	k := webtest.DefaultKeys()
	k.Projects["phc_x"] = auth.Project{ID: 7, Name: "Shop"}
	k.Projects["phc_private"] = auth.Project{ID: 8, Name: "Private", AnonymizeIPs: true}
	return k
}

func serve(t *testing.T, j capture.Appender) string {
	return webtest.Serve(t, keys(), capture.NewHTTP(j, capture.NewMetrics(nil), zap.NewNop()))
}

type answer struct {
	status int
	body   string
	header http.Header
}

func send(t *testing.T, method, address, contentType, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, strings.TrimSpace(string(data)), res.Header}
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func TestCaptureAccepts(t *testing.T) {
	t.Parallel()
	const one = `{"api_key":"phc_x","event":"paid 💻","distinct_id":"u1","properties":{"amount":9.50}}`
	form := "application/x-www-form-urlencoded"
	encoded := base64.StdEncoding.EncodeToString([]byte(one))
	j := new(memoryJournal)
	base := serve(t, j)
	for _, path := range []string{"/capture", "/batch", "/e", "/i/v0/e", "/track", "/engage"} {
		for _, slash := range []string{"", "/"} {
			cases := []struct{ name, method, query, contentType, body string }{
				{"JSON", "POST", "", "application/json", one},
				{"JSON with a charset", "POST", "", "application/json; charset=utf-8", one},
				{"text", "POST", "", "text/plain", one},
				{"no content type", "POST", "", "", one},
				{"in an array", "POST", "", "application/json", "[" + one + "]"},
				{"in a batch", "POST", "", "application/json", `{"api_key":"phc_x","batch":[` + one + `]}`},
				{"a form with base64", "POST", "", form, "data=" + url.QueryEscape(encoded)},
				{"base64 without padding", "POST", "?compression=base64", form, "data=" + url.QueryEscape(strings.TrimRight(encoded, "="))},
				{"gzip that says so", "POST", "?compression=gzip-js", "text/plain", gzipped(one)},
				{"gzip that does not", "POST", "", "text/plain", gzipped(one)},
				{"a query", "GET", "?data=" + url.QueryEscape(encoded), "", ""},
			}
			for _, c := range cases {
				t.Run(path+slash+" "+c.name, func(t *testing.T) {
					j.clear()
					got := send(t, c.method, base+path+slash+c.query, c.contentType, c.body)
					if got.status != 200 || got.body != `{"status":1}` {
						t.Fatalf("%d %s", got.status, got.body)
					}
					events, said := j.events(t)
					if len(events) != 1 || said != "" {
						t.Fatalf("%d events, %s", len(events), said)
					}
					e := events[0]
					if e.ProjectID != 7 || e.Name != "paid 💻" || e.DistinctID != "u1" || string(e.Properties) != `{"$ip":"127.0.0.1","amount":9.50}` {
						t.Errorf("got %+v %s", e, e.Properties)
					}
				})
			}
		}
	}
}

func TestCaptureAnswers(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, method, path, body string
		status                   int
		want                     string // of the body
		events                   int
	}{
		{"an event without a name is not ingested, still 200", "POST", "/capture/", `{"api_key":"phc_x","distinct_id":"u"}`, 200, `{"status":1}`, 0},
		{"an event without a distinct id is not ingested, still 200", "POST", "/capture/", `{"api_key":"phc_x","event":"a"}`, 200, `{"status":1}`, 0},
		{"one bad event does not touch the others", "POST", "/batch/", `{"api_key":"phc_x","batch":[{"event":"a","distinct_id":"u"},{},{"event":"b","distinct_id":""},{"event":"c","distinct_id":"u"}]}`, 200, `{"status":1}`, 2},
		{"an empty batch is fine", "POST", "/batch/", `{"api_key":"phc_x","batch":[]}`, 200, `{"status":1}`, 0},
		{"an empty batch of a wrong key is not", "POST", "/batch/", `{"api_key":"nope","batch":[]}`, 401, `"code":"invalid_api_key"`, 0},
		{"a beacon has no answer", "POST", "/e/?beacon=1", `{"api_key":"phc_x","event":"a","distinct_id":"u"}`, 204, ``, 1},
		{"the oldest path names its events", "POST", "/engage/", `{"$token":"phc_x","$distinct_id":"u1","$set":{"plan":"pro"}}`, 200, `{"status":1}`, 1},
		{"white space around a key", "POST", "/capture/", `{"api_key":" phc_x\n","event":"a","distinct_id":"u"}`, 200, `{"status":1}`, 1},
		{"the key in the query", "POST", "/capture/?token=phc_x", `{"event":"a","distinct_id":"u"}`, 200, `{"status":1}`, 1},
		{"a personal key with a project", "POST", "/capture/?project_id=7", `{"api_key":"phx_test","event":"a","distinct_id":"u"}`, 200, `{"status":1}`, 1},
		{"a personal key with a project in the body", "POST", "/batch/", `{"api_key":"phx_test","project_id":7,"batch":[{"event":"a","distinct_id":"u"}]}`, 200, `{"status":1}`, 1},
		{"nothing", "POST", "/capture/", ``, 400, `"code":"no_data"`, 0},
		{"no JSON", "POST", "/capture/", `{"event":`, 400, `{"type":"validation_error","code":"invalid_payload","detail":"Malformed request data`, 0},
		{"a batch that is text", "POST", "/batch/", `{"api_key":"phc_x","batch":"[{}]"}`, 400, `"code":"invalid_payload"`, 0},
		{"no key", "POST", "/capture/", `{"event":"a","distinct_id":"u"}`, 401, `{"type":"authentication_error","code":"invalid_api_key"`, 0},
		{"a wrong key", "POST", "/capture/", `{"api_key":"nope","event":"a","distinct_id":"u"}`, 401, `"code":"invalid_api_key"`, 0},
		{"different keys", "POST", "/e/", `[{"token":"phc_x"},{"token":"phc_test"}]`, 401, `"code":"invalid_api_key"`, 0},
		{"a personal key without a project", "POST", "/capture/", `{"api_key":"phx_test","event":"a","distinct_id":"u"}`, 200, `{"status":1}`, 1},
		{"a personal key with a project that is no number", "POST", "/capture/?project_id=abc", `{"api_key":"phx_test","event":"a"}`, 400, `"code":"invalid_project"`, 0},
		{"a wrong personal key", "POST", "/capture/?project_id=7", `{"api_key":"phx_bad","event":"a","distinct_id":"u"}`, 401, `"code":"invalid_personal_api_key"`, 0},
		{"another method", "PUT", "/capture/", `{}`, 405, ``, 0},
	}
	j := new(memoryJournal)
	base := serve(t, j)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			j.clear()
			got := send(t, c.method, base+c.path, "application/json", c.body, "Origin", "https://shop.example")
			if got.status != c.status || !strings.Contains(got.body, c.want) {
				t.Errorf("got %d %s", got.status, got.body)
			}
			if c.status < 400 && got.header.Get("Access-Control-Allow-Origin") != "https://shop.example" {
				t.Errorf("origin is not echoed: %v", got.header)
			}
			if strings.Contains(got.body, `"attr":null`) {
				t.Errorf("a public error has no attr: %s", got.body)
			}
			if events, _ := j.events(t); len(events) != c.events {
				t.Errorf("%d events, want %d", len(events), c.events)
			}
		})
	}
}

func TestCaptureFailsWithoutAJournalWrite(t *testing.T) {
	t.Parallel()
	full := fault.New(fault.Unavailable, "journal_full", "There is no space left.").After(10e9)
	got := send(t, "POST", serve(t, &memoryJournal{err: full})+"/capture/", "application/json", `{"api_key":"phc_x","event":"a","distinct_id":"u"}`)
	if got.status != 503 || got.header.Get("Retry-After") != "10" {
		t.Errorf("got %d %v %s", got.status, got.header, got.body)
	}
}

func TestCaptureAnonymisesAddresses(t *testing.T) {
	t.Parallel()
	j := new(memoryJournal)
	send(t, "POST", serve(t, j)+"/e/", "", `{"api_key":"phc_private","event":"a","distinct_id":"u","properties":{"$ip":"192.0.2.1"}}`)
	events, _ := j.events(t)
	if string(events[0].Properties) != `{}` {
		t.Errorf("got %s", events[0].Properties)
	}
	if rec, err := event.ParseRecord(j.records[0]); err != nil || rec.ClientIP.IsValid() {
		t.Errorf("the journal holds %v, %v", rec.ClientIP, err)
	}
}

func TestSentAt(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("event/testdata/timestamps.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			ID, Query  string
			BodySentAt *string `json:"body_sent_at"`
			Expected   *string
		} `json:"sent_at_extraction"`
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Vectors) < 6 {
		t.Fatal(len(file.Vectors), err)
	}
	j := new(memoryJournal)
	base := serve(t, j)
	for _, v := range file.Vectors {
		t.Run(v.ID, func(t *testing.T) {
			j.clear()
			body, _ := json.Marshal(map[string]any{"api_key": "phc_x", "sent_at": v.BodySentAt, "batch": []any{map[string]any{"event": "a", "distinct_id": "u"}}})
			send(t, "POST", base+"/batch/?"+v.Query, "application/json", string(body))
			var got struct {
				SentAt *string `json:"$sent_at"`
			}
			events, _ := j.events(t)
			if err := json.Unmarshal(events[0].Properties, &got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.SentAt, v.Expected) {
				t.Errorf("got %s, want %v", events[0].Properties, v.Expected)
			}
		})
	}
}

package app_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/guidonhq/guidon/api"
	"github.com/guidonhq/guidon/api/apitest"
	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/host/settings"
)

// TestStories runs the stories on both databases. A story is one .txtar file of
// testdata: requests, the expected answers and the expected rows, in order. The
// first word of a section name is its kind; the rest is a title.
//
//	-- request: a newcomer captures an event --
//	POST /capture/
//
//	{"api_key": "$PROJECT_KEY", "event": "paid", "distinct_id": "u1"}
//	-- answer --
//	200
//	{"status": 1}
//	-- rows --
//	SELECT event, distinct_id FROM events
//	paid|u1
//
// An answer may have keys that the story does not name, unless the section is called
// "exactly". <any> stands for every value, <string>, <number>, <time> and <uuid> for
// values of that kind, and <as NAME> stores the value as $NAME for later sections.
// Headers are lines between status and body. An "eventually" section repeats the
// request until the answer matches or twenty seconds pass.
//
// With -short, which the race detector uses, every third story runs: each is one request
// after another, and the packages have tests of their own.
func TestStories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for i, file := range files {
		if testing.Short() && i%3 != 0 {
			continue
		}
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			dbtest.RunURL(t, func(t *testing.T, url string) {
				s := &story{server: serve(t, func(c *app.Config) { c.Database.URL = url; addPlugins(t, c, archive.Comment) }), vars: map[string]string{}}
				s.vars["PROJECT_KEY"], s.vars["PERSONAL_KEY"] = s.server.ProjectKey, s.server.PersonalKey
				for _, part := range archive.Files {
					s.run(t, part)
				}
			})
		})
	}
}

// addPlugins adds the plugins that the comment of a story names: a line "notifier:
// hook" adds a webhook notifier whose endpoint accepts every post, and "matcher:
// cidr" a bundled matcher with its default config.
func addPlugins(t *testing.T, c *app.Config, comment []byte) {
	t.Helper()
	for line := range strings.Lines(string(comment)) {
		if name, ok := strings.CutPrefix(line, "matcher:"); ok {
			name = strings.TrimSpace(name)
			c.Plugins.Instances = append(c.Plugins.Instances, settings.Instance{Name: name, Kind: "matcher", Use: name})
			// Stories check answers; a busy machine must not fail them.
			c.Flags.PluginTimeout, c.Operators.CompileTimeout = 50*time.Millisecond, 30*time.Second
		}
		name, ok := strings.CutPrefix(line, "notifier:")
		if !ok {
			continue
		}
		endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(endpoint.Close)
		c.Plugins.Instances = append(c.Plugins.Instances, settings.Instance{
			Name: strings.TrimSpace(name), Kind: "notifier", Use: "webhook",
			Config: map[string]any{"url": endpoint.URL, "allow_networks": []any{"127.0.0.0/8"}},
		})
	}
}

// story is the state of a running story.
type story struct {
	server *server
	vars   map[string]string
	send   func(t *testing.T) (*http.Response, []byte)
	name   string
}

// run executes one section.
func (s *story) run(t *testing.T, part txtar.File) {
	t.Helper()
	text := s.expand(string(part.Data))
	kind, _, _ := strings.Cut(part.Name, ":")
	switch kind {
	case "request":
		s.name = part.Name
		s.send = s.request(t, text)
	case "answer", "exactly":
		if problem := s.check(t, text, kind == "exactly"); problem != "" {
			t.Fatalf("%s: %s", s.name, problem)
		}
	case "eventually":
		s.until(t, func() string { return s.check(t, text, false) })
	case "rows":
		s.until(t, func() string { return s.rows(t, text) })
	default:
		t.Fatalf("a section must be request, answer, exactly, eventually or rows, not %q", part.Name)
	}
}

var variable = regexp.MustCompile(`\$[A-Z][A-Z0-9_]*`)

func (s *story) expand(text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := s.vars[name[1:]]; ok {
			return value
		}
		return name
	})
}

// request parses "METHOD path", header lines, an empty line and a body, and returns
// a function that sends the request. Requests to management paths carry the personal
// key unless the story has its own Authorization header (an empty one sends none).
func (s *story) request(t *testing.T, text string) func(*testing.T) (*http.Response, []byte) {
	t.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	method, path, _ := strings.Cut(lines[0], " ")
	header := http.Header{"Content-Type": {"application/json"}}
	if strings.HasPrefix(path, "/api/") {
		header.Set("Authorization", "Bearer "+s.vars["PERSONAL_KEY"])
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ":")
		if value = strings.TrimSpace(value); value == "" {
			header.Del(name)
		} else {
			header.Set(name, value)
		}
	}
	return func(t *testing.T) (*http.Response, []byte) {
		t.Helper()
		req, err := http.NewRequest(method, s.server.url(path), strings.NewReader(strings.TrimRight(body, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header.Clone()
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if method == http.MethodOptions {
			return res, answer // a preflight is CORS, not an operation
		}
		if err := document(t).Check(method, path, res.StatusCode, res.Header, answer); err != nil {
			t.Errorf("%s: violates api/openapi.yaml: %v", s.name, err)
		}
		return res, answer
	}
}

var document = func() func(t *testing.T) *apitest.Document {
	read := sync.OnceValues(func() (*apitest.Document, error) { return apitest.New(api.OpenAPI) })
	return func(t *testing.T) *apitest.Document {
		t.Helper()
		d, err := read()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}()

// TestEveryRouteIsDocumented compares the served routes with api/openapi.yaml.
func TestEveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	var served []string
	for _, r := range serve(t).Routes {
		served = append(served, r.Method+" "+r.Path)
	}
	for _, difference := range document(t).Differences(served) {
		t.Error(difference)
	}
}

// check sends the request and describes the first difference between the answer and
// the expected text, "" if there is none.
func (s *story) check(t *testing.T, text string, exactly bool) string {
	t.Helper()
	res, answer := s.send(t)
	in := bufio.NewReader(strings.NewReader(text))
	status, _ := in.ReadString('\n')
	if got := fmt.Sprint(res.StatusCode); got != strings.TrimSpace(status) {
		return fmt.Sprintf("status %s, want %s: %s", got, strings.TrimSpace(status), answer)
	}
	rest, _ := io.ReadAll(in)
	for headerLine.Match(rest) {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		name, value, _ := strings.Cut(string(line), ": ")
		if got := res.Header.Get(name); got != value && !kindOf(value, got) {
			return fmt.Sprintf("header %s is %q, want %q", name, got, value)
		}
		rest = after
	}
	rest = bytes.TrimSpace(rest)
	if len(rest) == 0 {
		if len(answer) != 0 && exactly {
			return fmt.Sprintf("the body is %s, want none", answer)
		}
		return ""
	}
	want, err := decode(rest)
	if err != nil {
		if string(rest) == strings.TrimSpace(string(answer)) {
			return ""
		}
		return fmt.Sprintf("the body is %s, want %s", answer, rest)
	}
	got, err := decode(answer)
	if err != nil {
		return fmt.Sprintf("the body is not JSON: %s", answer)
	}
	if problem := s.compare("", want, got, exactly); problem != "" {
		return problem + "\nin " + string(answer)
	}
	return ""
}

var headerLine = regexp.MustCompile(`^[A-Z][A-Za-z-]+: `)

func decode(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func (s *story) compare(at string, want, got any, exactly bool) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, want an object", at, got)
		}
		for _, key := range sortedKeys(w) {
			if _, there := g[key]; !there && w[key] != "<absent>" {
				return fmt.Sprintf("%s.%s is missing", at, key)
			}
			if w[key] == "<absent>" {
				if _, there := g[key]; there {
					return fmt.Sprintf("%s.%s must not be present", at, key)
				}
				continue
			}
			if problem := s.compare(at+"."+key, w[key], g[key], exactly); problem != "" {
				return problem
			}
		}
		for _, key := range sortedKeys(g) {
			if _, named := w[key]; exactly && !named {
				return fmt.Sprintf("%s.%s must not be present", at, key)
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s is %v, want %d items", at, got, len(w))
		}
		for i := range w {
			if problem := s.compare(fmt.Sprintf("%s[%d]", at, i), w[i], g[i], exactly); problem != "" {
				return problem
			}
		}
		return ""
	case string:
		if name, ok := strings.CutPrefix(w, "<as "); ok {
			s.vars[strings.TrimSuffix(name, ">")] = fmt.Sprint(got)
			return ""
		}
		if kindOf(w, got) {
			return ""
		}
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s is %v, want %v", at, got, want)
	}
	return ""
}

var uuidText = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func kindOf(want string, got any) bool {
	text, isText := got.(string)
	switch want {
	case "<any>":
		return true
	case "<string>":
		return isText
	case "<number>":
		_, ok := got.(json.Number)
		return ok
	case "<uuid>":
		return isText && uuidText.MatchString(text)
	case "<time>":
		_, err := time.Parse(time.RFC3339Nano, text)
		return isText && err == nil
	}
	return false
}

// rows runs the first line as SQL and compares the result with the rest.
func (s *story) rows(t *testing.T, text string) string {
	t.Helper()
	query, want, _ := strings.Cut(text, "\n")
	rows, err := s.server.DB.Read(context.Background()).QueryContext(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	var got strings.Builder
	for rows.Next() {
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		if err := rows.Scan(cells...); err != nil {
			t.Fatal(err)
		}
		for i, cell := range cells {
			if i > 0 {
				got.WriteByte('|')
			}
			if raw, ok := (*cell.(*any)).([]byte); ok {
				fmt.Fprintf(&got, "%s", raw)
			} else {
				fmt.Fprintf(&got, "%v", *cell.(*any))
			}
		}
		got.WriteByte('\n')
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(got.String()) != strings.TrimSpace(want) {
		return fmt.Sprintf("%s returned\n%swant\n%s", query, got.String(), want)
	}
	return ""
}

func (s *story) until(t *testing.T, try func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		problem := try()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", s.name, problem)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

//go:build e2e

package e2e_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
)

// Limits of the console in bytes as sent compressed. TestConsoleBudget has those of time.
const (
	firstPageBytes = 60_000
	allBytes       = 200_000
)

// hostile is a text that runs as a script where it is taken for markup.
const hostile = `"><img src=x onerror="alert(1)"><script>alert(2)</script>{{alert(3)}}`

// consoleResult is what a story in the browser saw, as lib.mjs prints it.
type consoleResult struct {
	Problems, Steps          []string
	FirstBytes, FirstContent float64
	Hands, Machine           float64   // of newuser.mjs: seconds
	Pages                    []visited // of scale.mjs
	Loads                    []loaded  // of budget.mjs
	On, Visits, After        int       // of newuser.mjs: people with the feature, of all, after the kill
}

// inBrowser runs a story of testdata/console in Chromium against the server, and fails for
// each problem that it saw. The story has the fields in its task. GUIDON_E2E_SHOTS is a
// directory for pictures of every page. How pages look does not depend on the database:
// a server on Postgres leaves that out.
func inBrowser(t *testing.T, s *server, story string, fields map[string]any) consoleResult {
	t.Helper()
	dir := install(t, "console")
	_, second := s.database()
	task := s.task(map[string]any{"hostile": hostile, "shots": os.Getenv("GUIDON_E2E_SHOTS"), "looks": !second})
	maps.Copy(task, fields)
	var got consoleResult
	script(t, dir, task, &got, "node", story)
	for _, p := range got.Problems {
		t.Error(p)
	}
	t.Log(strings.Join(got.Steps, "\n"))
	return got
}

// onDatabases runs a test on SQLite and, in the long form, on Postgres, beside others: the
// stories of app hold the answers that pages read against both. The environment of the
// test's server gets the variables of database.
func onDatabases(t *testing.T, test func(t *testing.T, database []string)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, nil)
	})
	t.Run("postgres", func(t *testing.T) {
		longTest(t)
		t.Parallel()
		test(t, []string{databaseVariable + dbtest.PostgresURL(t)})
	})
}

const databaseVariable = "GUIDON_DATABASE_URL="

// database is the address of the Postgres database, and whether the server has one.
func (s *server) database() (url string, found bool) {
	for _, v := range s.environment {
		if url, found = strings.CutPrefix(v, databaseVariable); found {
			return url, true
		}
	}
	return "", false
}

// TestConsole works with the console in Chromium: signing in, making, changing, killing
// and deleting a flag, merging with a change of someone else, staying with unsaved changes,
// and asking why. No page has
// a finding of axe, an error in the console, a request to another origin, or a text that
// runs, in light, dark and at 360 pixels.
func TestConsole(t *testing.T) {
	onDatabases(t, testConsole)
}

func testConsole(t *testing.T, database []string) {
	s := start(t, database...)
	create := func(fields map[string]any) {
		t.Helper()
		s.do(t, http.MethodPost, "/api/projects/1/feature_flags/", fields, nil, http.StatusCreated)
	}
	create(map[string]any{"key": "new-nav", "name": "The navigation", "tags": []string{"frontend"}, "filters": json.RawMessage(`{"groups": [{"properties": [{"key": "plan", "type": "person", "operator": "exact", "value": ["pro"]}], "rollout_percentage": 100}]}`)})
	create(map[string]any{"key": "hostile", "name": hostile, "tags": []string{hostile}, "filters": map[string]any{"groups": []any{map[string]any{
		"properties": []any{map[string]any{"key": hostile, "type": "person", "operator": "exact", "value": []string{hostile}}}, "rollout_percentage": 10}}}})
	create(map[string]any{"key": "large", "filters": json.RawMessage(`{"groups": [{"properties": [{"key": "account", "type": "person", "operator": "exact", "value": [9007199254740993]}], "rollout_percentage": 100}]}`)})
	s.do(t, http.MethodPost, "/api/projects/1/cohorts/", map[string]any{"name": "Pro customers", "filters": json.RawMessage(`{"properties": {"type": "AND", "values": [{"key": "plan", "type": "person", "operator": "exact", "value": ["pro"]}]}}`)}, nil, http.StatusCreated)
	s.do(t, http.MethodPut, "/api/plugins/copy/config/", map[string]any{"plugin": "file", "config": map[string]any{"path": "copy.ndjson"}}, nil, http.StatusOK)
	event, err := json.Marshal(map[string]any{"api_key": s.project, "event": "signed up", "distinct_id": "ada", "properties": map[string]any{"$set": map[string]any{"plan": "pro", hostile: hostile}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.status(http.MethodPost, "/capture/", strings.NewReader(string(event)), http.StatusOK); err != nil {
		t.Fatal(err)
	}
	printed, err := func() ([]byte, error) {
		cmd := exec.Command(binary(t), "user", "login-link", "admin@localhost")
		cmd.Env = append(append(os.Environ(), "GUIDON_DATA_DIR="+s.data), s.environment...)
		return cmd.CombinedOutput()
	}()
	link := regexp.MustCompile(`#link=(\S+)`).FindSubmatch(printed)
	if err != nil || link == nil {
		t.Fatalf("guidon user login-link: %v: %s", err, printed)
	}
	got := inBrowser(t, s, "console.mjs", map[string]any{"link": string(link[1])})
	if got.FirstContent <= 0 {
		t.Error("no first content was measured")
	}
	if got.FirstBytes < 10_000 || got.FirstBytes > firstPageBytes {
		t.Errorf("%.0f bytes to the first page; want 10000 to %d", got.FirstBytes, firstPageBytes)
	}
	t.Logf("first content after %.0f ms, %.0f bytes to the first page", got.FirstContent, got.FirstBytes)
}

// TestConsoleSize compares the console, as it is sent with gzip, with its limits: what the
// document and the page of flags load, and all of it.
func TestConsoleSize(t *testing.T) {
	t.Parallel()
	s := start(t)
	get := func(path string) (content []byte, sent int) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		req.Header.Set("Accept-Encoding", "gzip")
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("GET %s: %d, encoding %q: %s", path, res.StatusCode, res.Header.Get("Content-Encoding"), tail(raw, 300))
		}
		unzipped, err := gzip.NewReader(strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		content, err = io.ReadAll(unzipped)
		if err != nil {
			t.Fatal(err)
		}
		return content, len(raw)
	}
	document, first := get("/")
	if strings.Contains(string(document), "<style") || regexp.MustCompile(`<script[^>]*>[^<]`).Match(document) {
		t.Errorf("the document has code or style inside: %s", document)
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="(/console/assets/[^"]+)"`).FindAllSubmatch(document, -1) {
		_, sent := get(string(m[1]))
		first += sent
	}
	all := 0
	err := filepath.WalkDir("../core/console/dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".txt.gz") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all += int(info.Size())
		if base := filepath.Base(name); strings.HasPrefix(base, "list-") || strings.HasPrefix(base, "signin-") {
			first += int(info.Size())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes to the first page, %d bytes in all", first, all)
	if first > firstPageBytes || all > allBytes || first < 10_000 {
		t.Errorf("%d bytes to the first page, at most %d; %d bytes in all, at most %d", first, firstPageBytes, all, allBytes)
	}
}

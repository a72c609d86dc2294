//go:build e2e

package e2e_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Limits of the console: bytes as sent compressed, and milliseconds to the first content,
// with much room for a slow machine (measured: 200).
const (
	firstContent   = 5_000
	firstPageBytes = 60_000
	allBytes       = 200_000
)

// hostile is a text that runs as a script where it is taken for markup.
const hostile = `"><img src=x onerror="alert(1)"><script>alert(2)</script>{{alert(3)}}`

// TestConsole works with the console in Chromium: signing in, making, changing, killing
// and deleting a flag, merging with a change of someone else, staying with unsaved changes,
// and asking why. No page has
// a finding of axe, an error in the console, a request to another origin, or a text that
// runs, in light, dark and at 360 pixels.
func TestConsole(t *testing.T) {
	dir := install(t, "console")
	s := start(t)
	create := func(fields map[string]any) {
		t.Helper()
		s.do(t, http.MethodPost, "/api/projects/1/feature_flags/", fields, nil, http.StatusCreated)
	}
	create(map[string]any{"key": "new-nav", "name": "The navigation", "tags": []string{"frontend"}, "filters": json.RawMessage(`{"groups": [{"properties": [{"key": "plan", "type": "person", "operator": "exact", "value": ["pro"]}], "rollout_percentage": 100}]}`)})
	create(map[string]any{"key": "hostile", "name": hostile, "tags": []string{hostile}, "filters": map[string]any{"groups": []any{map[string]any{
		"properties": []any{map[string]any{"key": hostile, "type": "person", "operator": "exact", "value": []string{hostile}}}, "rollout_percentage": 10}}}})
	create(map[string]any{"key": "large", "filters": json.RawMessage(`{"groups": [{"properties": [{"key": "account", "type": "person", "operator": "exact", "value": [9007199254740993]}], "rollout_percentage": 100}]}`)})
	event, err := json.Marshal(map[string]any{"api_key": s.project, "event": "signed up", "distinct_id": "ada", "properties": map[string]any{"$set": map[string]any{"plan": "pro", hostile: hostile}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.status(http.MethodPost, "/capture/", strings.NewReader(string(event)), http.StatusOK); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Problems, Steps          []string
		FirstBytes, FirstContent float64
	}
	printed, err := func() ([]byte, error) {
		cmd := exec.Command(binary(t), "user", "login-link", "admin@localhost")
		cmd.Env = append(os.Environ(), "GUIDON_DATA_DIR="+s.data)
		return cmd.CombinedOutput()
	}()
	link := regexp.MustCompile(`#link=(\S+)`).FindSubmatch(printed)
	if err != nil || link == nil {
		t.Fatalf("guidon user login-link: %v: %s", err, printed)
	}
	task := s.task(map[string]any{"hostile": hostile, "link": string(link[1]), "shots": os.Getenv("GUIDON_E2E_SHOTS")})
	script(t, dir, task, &got, "node", "console.mjs")
	for _, p := range got.Problems {
		t.Error(p)
	}
	if got.FirstContent <= 0 || got.FirstContent > firstContent {
		t.Errorf("the first content is painted after %.0f ms; want more than 0, at most %d", got.FirstContent, firstContent)
	}
	if got.FirstBytes < 10_000 || got.FirstBytes > firstPageBytes {
		t.Errorf("%.0f bytes to the first page; want 10000 to %d", got.FirstBytes, firstPageBytes)
	}
	t.Logf("first content after %.0f ms, %.0f bytes to the first page\n%s", got.FirstContent, got.FirstBytes, strings.Join(got.Steps, "\n"))
}

// TestConsoleSize compares the console, as it is sent with gzip, with its limits: what the
// document and the page of flags load, and all of it.
func TestConsoleSize(t *testing.T) {
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

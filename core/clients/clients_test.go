package clients_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/clients"
	"github.com/guidonhq/guidon/core/clients/scripts"
	"github.com/guidonhq/guidon/core/web/webtest"
)

type configOf struct{}

func (configOf) ConfigScript(_ auth.Project, token string) []byte {
	return []byte("config(" + token + ");")
}

// install writes the scripts of a version; their content names both.
func install(t *testing.T, dir, version string, names ...string) {
	t.Helper()
	dist := filepath.Join(dir, "posthog-js", version, "dist")
	if err := os.MkdirAll(dist, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "array.js") {
		text := strings.Repeat("/* padding */", 50) + name + "@" + version
		if err := os.WriteFile(filepath.Join(dist, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func serve(t *testing.T, dir string) string {
	t.Helper()
	return webtest.Serve(t, webtest.DefaultKeys(), clients.NewHTTP(scripts.NewLibrary(dir), configOf{}))
}

type answer struct {
	status int
	body   string
	header http.Header
}

func request(t *testing.T, method, url string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "https://shop.example")
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Header.Get("Access-Control-Allow-Origin"); got != "https://shop.example" {
		t.Errorf("%s %s = %d: Access-Control-Allow-Origin is %q", method, url, res.StatusCode, got)
	}
	return answer{res.StatusCode, string(body), res.Header}
}

// Client libraries take these answers without a retry and without an error.
func TestPathsOfMissingProductsAnswerEmpty(t *testing.T) {
	t.Parallel()
	base := serve(t, t.TempDir())
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/api/surveys/?token=phc_test", 200, `{"surveys":[],"survey_config":null}`},
		{"GET", "/api/web_experiments/?token=phc_test", 200, `{"experiments":[]}`},
		{"GET", "/api/product_tours/?token=phc_test", 200, `{"product_tours":[]}`},
		{"POST", "/api/push_subscriptions/", 200, `{"status":1}`},
		{"POST", "/s/?compression=gzip-js", 200, `{"status":1}`},
		{"POST", "/report/?token=phc_test", 204, ``},
		{"GET", "/_health", 200, `ok`},
		{"GET", "/_preflight/", 200, `{"db":true,"initiated":true,"cloud":false,"demo":false}`},
		{"OPTIONS", "/api/surveys/", 200, `{"status":1}`},
		{"OPTIONS", "/s/", 200, `{"status":1}`},
	} {
		if got := request(t, c.method, base+c.path); got.status != c.status || got.body != c.body {
			t.Errorf("%s %s = %d %s", c.method, c.path, got.status, got.body)
		}
	}
}

func TestScriptsComeFromTheInstalledVersions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	install(t, dir, "1.449.2", "surveys.js", "array.full.js")
	install(t, dir, "1.96.1")
	install(t, dir, "2.0.0-rc.1")
	if err := os.WriteFile(filepath.Join(dir, "secret.js"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "secret.js"), filepath.Join(dir, "posthog-js/1.449.2/dist/link.js")); err != nil {
		t.Fatal(err)
	}
	base := serve(t, dir)
	const forEver, fiveMinutes = "public, max-age=31536000, immutable", "public, max-age=300"
	for path, want := range map[string]struct{ end, cache string }{
		"/static/array.js":                     {"array.js@1.449.2", fiveMinutes},
		"/static/array.full.js":                {"array.full.js@1.449.2", fiveMinutes},
		"/static/surveys.js?v=1.449.2":         {"surveys.js@1.449.2", fiveMinutes},
		"/static/array.js?v=1.96.1":            {"array.js@1.96.1", fiveMinutes},
		"/static/array.js?v=1.300.0":           {"array.js@1.449.2", fiveMinutes},
		"/static/array.js?v=9.0.0":             {"array.js@1.449.2", fiveMinutes},
		"/static/1.449.2/surveys.js":           {"surveys.js@1.449.2", forEver},
		"/static/1.96.1/array.js":              {"array.js@1.96.1", forEver},
		"/static/1/array.js":                   {"array.js@1.449.2", fiveMinutes},
		"/static/1.96/array.js":                {"array.js@1.96.1", fiveMinutes},
		"/static/2/array.js":                   {"array.js@2.0.0-rc.1", fiveMinutes},
		"/array/phc_test/array.js":             {"array.js@1.449.2", "no-cache"},
		"/static/1.300.0/array.js":             {"", ""},
		"/static/recorder.js":                  {"", ""},
		"/static/link.js":                      {"", ""},
		"/static/1.449.2/..%2f..%2fpackage.js": {"", ""},
		"/static/..%2f..%2f..%2fsecret.js":     {"", ""},
		"/static/%2e%2e/secret.js":             {"", ""},
		"/static/1.449.2/array.js.map":         {"", ""},
	} {
		got := request(t, "GET", base+path)
		if want.end == "" {
			if got.status != 404 || strings.Contains(got.body, "secret\n") {
				t.Errorf("%s = %d %s", path, got.status, got.body)
			}
			continue
		}
		if got.status != 200 || !strings.HasSuffix(got.body, want.end) || got.header.Get("Cache-Control") != want.cache ||
			got.header.Get("Content-Type") != scripts.ContentType {
			t.Errorf("%s = %d …%s %v", path, got.status, got.body[max(0, len(got.body)-30):], got.header)
		}
	}
	if got := request(t, "GET", base+"/array/phc_test/array.js"); !strings.HasPrefix(got.body, "config(phc_test);\n") {
		t.Errorf("without the configuration: %.60s", got.body)
	}
	if got := request(t, "GET", base+"/array/phc_unknown/array.js"); got.status != 401 {
		t.Errorf("an unknown key = %d", got.status)
	}
}

func TestScriptsAreCompressedAndRevalidated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	install(t, dir, "1.449.2")
	base := serve(t, dir)
	plain := request(t, "GET", base+"/static/array.js")
	packed := request(t, "GET", base+"/static/array.js", "Accept-Encoding", "gzip, br")
	if packed.header.Get("Content-Encoding") != "gzip" || len(packed.body) >= len(plain.body) {
		t.Fatalf("not compressed: %v", packed.header)
	}
	r, err := gzip.NewReader(bytes.NewReader([]byte(packed.body)))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != plain.body {
		t.Errorf("%v: another script", err)
	}
	for encoding, a := range map[string]answer{"identity": plain, "gzip": packed} {
		got := request(t, "GET", base+"/static/array.js", "Accept-Encoding", encoding, "If-None-Match", a.header.Get("ETag"))
		if got.status != 304 || got.body != "" || got.header.Get("ETag") != a.header.Get("ETag") {
			t.Errorf("%s: %d %q", encoding, got.status, got.header.Get("ETag"))
		}
	}
	if plain.header.Get("ETag") == packed.header.Get("ETag") {
		t.Error("both encodings have one ETag")
	}
}

// Without an installed version a page works and its console names the command.
func TestMissingLibraryIsAScript(t *testing.T) {
	t.Parallel()
	base := serve(t, filepath.Join(t.TempDir(), "none"))
	for _, path := range []string{"/static/array.js", "/static/array.full.js", "/static/1/array.js", "/array/phc_test/array.js"} {
		got := request(t, "GET", base+path)
		if got.status != 200 || !strings.Contains(got.body, "guidon clients install") || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s = %d %s %v", path, got.status, got.body, got.header)
		}
	}
	for _, path := range []string{"/static/surveys.js", "/static/1.449.2/array.js"} {
		if got := request(t, "GET", base+path); got.status != 404 {
			t.Errorf("%s = %d, want 404: the library then goes on without it", path, got.status)
		}
	}
}

func TestFilesStayInTheDirectoryOfTheVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	install(t, dir, "1.449.2")
	l := scripts.NewLibrary(dir)
	for _, name := range []string{"../package.js", "/etc/passwd", ".hidden.js", "a/b.js", "..\\x.js", "", "array.js\x00.js", strings.Repeat("a", 200) + ".js"} {
		if _, err := l.File("1.449.2", name); !scripts.IsNotFound(err) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

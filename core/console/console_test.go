package console_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/guidonhq/guidon/core/console"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// newServer serves a console of these files.
func newServer(t *testing.T, files map[string]string) (url string) {
	t.Helper()
	folder := fstest.MapFS{"README": {Data: []byte("not a file of the console")}}
	for name, content := range files {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		folder[name+".gz"] = &fstest.MapFile{Data: zipped.Bytes()}
		folder[name+".br"] = &fstest.MapFile{Data: []byte("brotli of " + name)}
	}
	assets, err := console.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return webtest.Serve(t, webtest.DefaultKeys(), console.NewHTTP(assets))
}

var built = map[string]string{"index.html": "<!doctype html>", "assets/app-1a2b.js": "go()", "icon.svg": "<svg/>"}

var client = &http.Client{Transport: &http.Transport{DisableCompression: true}}

func get(t *testing.T, url, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func TestPaths(t *testing.T) {
	t.Parallel()
	s := newServer(t, built)
	for _, c := range []struct {
		name, path, accept string
		status             int
		contentType, body  string
	}{
		{"a browser at the root", "/", "text/html,application/xhtml+xml,*/*;q=0.8", 200, "text/html; charset=utf-8", "<!doctype html>"},
		{"another client at the root", "/", "*/*", 200, "application/json", `{"name":"guidon"}`},
		{"a client that refuses HTML", "/", "text/html;q=0, application/json", 200, "application/json", `{"name":"guidon"}`},
		{"a view", "/console/project/1/flags/7", "*/*", 200, "text/html; charset=utf-8", "<!doctype html>"},
		{"a view with a slash", "/console/", "*/*", 200, "text/html; charset=utf-8", "<!doctype html>"},
		{"the page of a link", "/sign-in", "*/*", 200, "text/html; charset=utf-8", "<!doctype html>"},
		{"a script", "/console/assets/app-1a2b.js", "*/*", 200, "text/javascript; charset=utf-8", "go()"},
		{"an icon", "/console/icon.svg", "*/*", 200, "image/svg+xml", "<svg/>"},
		{"a script of another build", "/console/assets/app-0000.js", "*/*", 404, "application/json", `"code":"not_found"`},
		{"a path of the API", "/api/nothing", "text/html", 404, "application/json", `"code":"not_found"`},
		{"another path", "/nothing", "text/html", 404, "application/json", `"code":"not_found"`},
		{"a path out of the folder", "/console/assets/../../README", "*/*", 404, "application/json", `"code":"not_found"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, body := get(t, s, "GET", c.path, "Accept", c.accept)
			if res.StatusCode != c.status || res.Header.Get("Content-Type") != c.contentType || !strings.Contains(body, c.body) {
				t.Errorf("status %d, type %q, body %q; want %d, %q, %q", res.StatusCode, res.Header.Get("Content-Type"), body, c.status, c.contentType, c.body)
			}
		})
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	s := newServer(t, built)
	for accept, want := range map[string]string{
		"gzip, deflate, br, zstd": "br", "gzip": "gzip", "br;q=0, gzip;q=0.5": "gzip", "GZIP": "gzip", "identity": "", "": "", "br;q=0.0": "",
	} {
		res, body := get(t, s, "GET", "/console/assets/app-1a2b.js", "Accept-Encoding", accept)
		if got := res.Header.Get("Content-Encoding"); got != want {
			t.Errorf("%q: encoding %q, want %q", accept, got, want)
		}
		if want == "" && body != "go()" {
			t.Errorf("%q: body %q", accept, body)
		}
		if !strings.Contains(res.Header.Get("Vary"), "Accept-Encoding") {
			t.Errorf("%q: Vary %q", accept, res.Header.Get("Vary"))
		}
	}
}

func TestCaching(t *testing.T) {
	t.Parallel()
	s := newServer(t, built)
	script, _ := get(t, s, "GET", "/console/assets/app-1a2b.js")
	if got := script.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
		t.Errorf("script: Cache-Control %q", got)
	}
	page, _ := get(t, s, "GET", "/console/project/1/flags", "Accept-Encoding", "br")
	if got := page.Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("document: Cache-Control %q", got)
	}
	tag := page.Header.Get("ETag")
	again, body := get(t, s, "GET", "/console/project/1/flags", "Accept-Encoding", "br", "If-None-Match", tag)
	if again.StatusCode != http.StatusNotModified || body != "" {
		t.Errorf("with the tag %s: %d %q", tag, again.StatusCode, body)
	}
	if other, _ := get(t, s, "GET", "/", "Accept", "text/html", "Accept-Encoding", "gzip", "If-None-Match", tag); other.StatusCode != http.StatusOK {
		t.Errorf("the tag of another encoding: %d", other.StatusCode)
	}
	head, body := get(t, s, "HEAD", "/console/", "Accept-Encoding", "br")
	if head.StatusCode != http.StatusOK || head.Header.Get("ETag") != tag || body != "" {
		t.Errorf("HEAD: %d, %q, %q", head.StatusCode, head.Header.Get("ETag"), body)
	}
}

func TestSecurityHeaders(t *testing.T) {
	t.Parallel()
	s := newServer(t, built)
	for _, path := range []string{"/", "/console/project/1/flags", "/sign-in", "/console/assets/app-1a2b.js"} {
		res, _ := get(t, s, "GET", path, "Accept", "text/html", "Origin", "https://evil.example")
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Access-Control-Allow-Origin": "",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		policy := res.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: no %s in %q", path, part, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: %q", path, policy)
		}
	}
}

func TestNotBuilt(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	for path, status := range map[string]int{"/": http.StatusOK, "/console/project/1/flags": http.StatusNotFound, "/sign-in": http.StatusNotFound} {
		res, body := get(t, s, "GET", path, "Accept", "text/html")
		if res.StatusCode != status || strings.Count(body, "\n") != 1 || !strings.Contains(body, "make build") {
			t.Errorf("%s: %d %q", path, res.StatusCode, body)
		}
	}
	if res, body := get(t, s, "GET", "/"); res.StatusCode != http.StatusOK || body != `{"name":"guidon"}` {
		t.Errorf("/ for another client: %d %q", res.StatusCode, body)
	}
}

func TestIncompleteBuild(t *testing.T) {
	t.Parallel()
	if _, err := console.Load(fstest.MapFS{"page.exe.gz": {}, "page.exe.br": {}}); err == nil || !strings.Contains(err.Error(), "page.exe has an extension without a media type") {
		t.Errorf("unknown extension: %v", err)
	}
	if _, err := console.Load(fstest.MapFS{"index.html.gz": {}}); err == nil || !strings.Contains(err.Error(), "index.html has no Brotli") {
		t.Errorf("a file without Brotli: %v", err)
	}
	if _, err := console.Built(); err != nil {
		t.Error(err)
	}
}

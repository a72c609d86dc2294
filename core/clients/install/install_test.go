package install_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/clients/install"
	"github.com/guidonhq/guidon/core/clients/scripts"
)

type entry struct{ name, text string }

var library = []entry{
	{"package/package.json", `{"name":"posthog-js"}`}, {"package/dist/array.js", "array"}, {"package/dist/surveys.js", "surveys"},
	{"package/dist/array.js.map", "map"}, {"package/lib/src/x.js", "other"},
}

func archive(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.text)), Typeflag: tar.TypeReg}
		if target, ok := strings.CutPrefix(e.text, "-> "); ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, target, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(e.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// registry serves one version of a package with the given integrity, or its own.
func registry(t *testing.T, content []byte, integrity string) install.Registry {
	t.Helper()
	if integrity == "" {
		sum := sha512.Sum512(content)
		integrity = "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	}
	mux := http.NewServeMux()
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	for _, version := range []string{"latest", "1.449.2"} {
		mux.HandleFunc("/posthog-js/"+version, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"name":"posthog-js","version":"1.449.2","dist":{"tarball":%q,"integrity":%q}}`, s.URL+"/package.tgz", integrity)
		})
	}
	mux.HandleFunc("/package.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) })
	return install.Registry{URL: s.URL, Client: s.Client()}
}

func filesBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestInstallFromTheRegistry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := install.Installer{NPM: "-", Registry: registry(t, archive(t, library), "")}
	for _, version := range []string{"", "latest", "1.449.2"} { // a second time changes nothing
		if got, err := in.Install(t.Context(), dir, version); err != nil || got != "1.449.2" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	const root = "posthog-js/1.449.2/"
	if got := strings.Join(filesBelow(t, dir), " "); got != root+"dist/array.js "+root+"dist/surveys.js "+root+"package.json" {
		t.Errorf("files: %s", got)
	}
	if v, ok := scripts.NewLibrary(dir).Newest("1"); !ok || v != "1.449.2" {
		t.Errorf("the library has %q", v)
	}
}

func TestInstallWithNPM(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tgz := filepath.Join(dir, "in.tgz")
	npm := filepath.Join(dir, "npm")
	if err := os.WriteFile(tgz, archive(t, library), 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n" + `[ "$1 $2" = "pack posthog-js@latest" ] || exit 9` + "\ncp " + tgz + ` "$6/posthog-js-1.449.2.tgz"` +
		"\n" + `echo '[{"name":"posthog-js","version":"1.449.2","filename":"posthog-js-1.449.2.tgz"}]'` + "\n"
	if err := os.WriteFile(npm, []byte(script), 0o700); err != nil { //nolint:gosec // the test runs it
		t.Fatal(err)
	}
	var log strings.Builder
	got, err := install.Installer{NPM: npm, Log: &log}.Install(t.Context(), filepath.Join(dir, "clients"), "")
	if err != nil || got != "1.449.2" || !strings.Contains(log.String(), "3 files") {
		t.Errorf("%q, %v\n%s", got, err, &log)
	}
}

// A package that cannot be trusted leaves nothing behind.
func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	good := archive(t, library)
	plain := registry(t, good, "")
	plain.URL = strings.Replace(plain.URL, "https", "http", 1)
	for name, c := range map[string]struct {
		version  string
		registry install.Registry
		want     string
	}{
		"another integrity":    {"", registry(t, good, "sha512-AAAA"), "integrity"},
		"no integrity":         {"", registry(t, good, "sha1-AAAA"), "integrity"},
		"plain HTTP":           {"", plain, "https"},
		"a path as version":    {"../../x", registry(t, good, ""), "not a version"},
		"an option as version": {"--registry=x", registry(t, good, ""), "not a version"},
		"no main script":       {"", registry(t, archive(t, library[:1]), ""), "dist/array.js"},
		"no archive":           {"", registry(t, []byte("text"), ""), "unpack"},
		"a version twice":      {"", registry(t, archive(t, append(library[1:2:2], library[1])), ""), "exists"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, err := install.Installer{NPM: "-", Registry: c.registry}.Install(t.Context(), dir, c.version)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			if left := filesBelow(t, dir); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
}

func TestInstallWritesNothingOutside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hostile := append([]entry{
		{"package/dist/../../../evil.js", "evil"}, {"../evil.js", "evil"}, {"/tmp/evil.js", "evil"}, {"package/dist/link.js", "-> /etc/passwd"},
		{"package/dist/sub/evil.js", "evil"}, {"package/dist", "-> /tmp"},
	}, library...)
	in := install.Installer{NPM: "-", Registry: registry(t, archive(t, hostile), "")}
	if _, err := in.Install(t.Context(), filepath.Join(dir, "clients"), ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range filesBelow(t, dir) {
		if strings.Contains(name, "evil") || strings.Contains(name, "link") {
			t.Errorf("it wrote %s", name)
		}
	}
}

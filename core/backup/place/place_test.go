package place_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/guidonhq/guidon/core/backup/place"
)

// store starts an S3 store with the bucket "backups".
func store(t *testing.T) place.S3 {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(srv.Close)
	return place.S3{Endpoint: srv.URL, Region: "us-east-1", AccessKey: "me", SecretKey: "hush", PathStyle: true}
}

func names(t *testing.T, p place.Place) (out []string) {
	t.Helper()
	list, err := p.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		out = append(out, e.Name)
	}
	slices.Sort(out)
	return out
}

// Each place shows complete files only, and replaces and removes them.
func TestPlaces(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	for target, s3 := range map[string]place.S3{dir + "/": {}, "s3://backups/some/prefix/": store(t)} {
		p, name, err := place.Parse(target, s3)
		if err != nil || name != "" {
			t.Fatalf("%s: %q %v", target, name, err)
		}
		large := bytes.Repeat([]byte("0123456789"), 7<<20) // more than one part of an upload
		for _, content := range [][]byte{[]byte("first"), large} {
			f, err := p.Create(t.Context(), "one", 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(content); err != nil {
				t.Fatal(err)
			}
			if err := f.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, err := p.Open(t.Context(), "one")
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if _ = r.Close(); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: %d bytes, want %d: %v", target, len(got), len(content), err)
			}
		}
		f, err := p.Create(t.Context(), "two", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(large[:1000]); err != nil {
			t.Fatal(err)
		}
		if got := names(t, p); !slices.Equal(got, []string{"one"}) {
			t.Errorf("%s: %v", target, got)
		}
		f.Abort()
		if got := names(t, p); !slices.Equal(got, []string{"one"}) {
			t.Errorf("%s: %v", target, got)
		}
		if _, err := p.Open(t.Context(), "two"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: opened a file that does not exist: %v", target, err)
		}
		if err := p.Remove(t.Context(), "one"); err != nil || len(names(t, p)) > 0 {
			t.Errorf("%s: %v %v", target, names(t, p), err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v %v", entries, err)
	}
}

func TestMissingBucketIsNamed(t *testing.T) {
	t.Parallel()
	p, _, err := place.Parse("s3://absent/x", store(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Create(t.Context(), "one", 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write([]byte("x"))
	if err := f.Commit(t.Context()); err == nil {
		t.Error("no error")
	}
}

// Clean removes what a killed writer left, and nothing that is being written.
func TestCleanRemovesAbandonedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, _, err := place.Parse(dir, place.S3{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Create(t.Context(), place.GeneratedName(time.Now()), 0)
	if err != nil {
		t.Fatal(err)
	}
	partial := listDir(t, dir)
	if len(partial) != 1 {
		t.Fatal(partial)
	}
	want := []string{".of-another-program", ".rsync.partial", partial[0], "one"}
	slices.Sort(want)
	for _, name := range append(want, ".one.123.guidon-partial") {
		if name == partial[0] {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := listDir(t, dir); !slices.Equal(left, want) {
		t.Errorf("left %v, want %v", left, want)
	}
	f.Abort()
	if left := listDir(t, dir); slices.Contains(left, partial[0]) {
		t.Errorf("left %v", left)
	}
}

func listDir(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestGeneratedNames(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 14, 30, 5, 0, time.UTC)
	name := place.GeneratedName(at)
	if got, ok := place.IsGenerated(name); name != "guidon-20261122T143005Z.guidon-backup" || !ok || !got.Equal(at) {
		t.Errorf("%s: %v %v", name, got, ok)
	}
	for _, other := range []string{"", "guidon-x.guidon-backup", "mine.guidon-backup", "guidon-20261122T143005Z"} {
		if _, ok := place.IsGenerated(other); ok {
			t.Errorf("%q is a generated name", other)
		}
	}
}

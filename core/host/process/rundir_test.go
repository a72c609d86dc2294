package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/host/process"
)

// makeRunDir returns the path of a new run directory and its Remove.
func makeRunDir(base, dataDir string) (path string, remove func() error, err error) {
	r, err := process.NewRunDir(base, dataDir)
	if err != nil {
		return "", nil, err
	}
	path, err = r.Path()
	return path, r.Remove, err
}

func TestRunDirIsPrivateAndStaleOnesAreRemoved(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "gd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	stale := filepath.Join(base, "h1")
	if err := os.MkdirAll(filepath.Join(stale, "plugin-dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stale, "owner"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first, remove, err := makeRunDir(base, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("the stale directory is still there")
	}
	second, removeSecond, err := makeRunDir(base, "")
	if err != nil || second == first {
		t.Fatal(second, err)
	}
	if _, err := os.Stat(first); err != nil {
		t.Error("a directory in use was removed")
	}
	if info, err := os.Stat(first); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	for _, fn := range []func() error{remove, removeSecond} {
		if err := fn(); err != nil {
			t.Error(err)
		}
	}
	// A data directory whose path is too long for a socket is avoided.
	long := filepath.Join(base, strings.Repeat("x", 80))
	path, remove, err := makeRunDir("", long)
	if err != nil || strings.HasPrefix(path, long) {
		t.Fatalf("%s %v", path, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, _, err := makeRunDir(long, ""); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("error %v", err)
	}
	if err := os.Chmod(base, 0o777); err != nil { //nolint:gosec // must be refused
		t.Fatal(err)
	}
	if _, _, err := makeRunDir(base, ""); err == nil || !strings.Contains(err.Error(), "only this user can write") {
		t.Errorf("error %v", err)
	}
}

func TestConcurrentHostsKeepEachOthersRunDir(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "gd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				path, remove, err := makeRunDir(base, "")
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(path); err != nil {
					t.Error(err)
				}
				if err := remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

package remote_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

func TestContexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "contexts.yaml")
	read := func() *remote.Contexts {
		t.Helper()
		c, err := remote.ReadContexts(path)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := read()
	if _, err := c.Find("a"); err == nil || !strings.Contains(err.Error(), "guidon login") {
		t.Errorf("find in nothing: %v", err)
	}
	c.Set(remote.Context{Name: "a", URL: "https://a", Project: 1, Key: "phx_a"})
	c.Set(remote.Context{Name: "b", URL: "https://b", Project: 2, Key: "phx_b"})
	c.Set(remote.Context{Name: "a", URL: "https://a", Project: 3, Key: "phx_a"})
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with keys: %v %v", info.Mode(), err)
	}
	c = read()
	if a, err := c.Find("a"); err != nil || a.Project != 3 || a.Key != "phx_a" || len(c.List) != 2 || c.Current != "a" {
		t.Errorf("read again: %+v %v", c, err)
	}
	if _, err := c.Find("x"); err == nil || !strings.Contains(err.Error(), "a, b") || strings.Contains(err.Error(), "phx_") {
		t.Errorf("find: %v", err)
	}
	c.Remove("a")
	if c.Current != "" || len(c.List) != 1 {
		t.Errorf("after a removal: %+v", c)
	}
}

func TestDamagedContexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contexts.yaml")
	if err := os.WriteFile(path, []byte("contexts: {"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := remote.ReadContexts(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("read: %v", err)
	}
}

//go:build e2e

package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// TestConsolePlugins enables sinks in Chromium, sends events to them, changes, pauses,
// restarts and disables one, reads the instances of the config file, sees the charts of a sink
// that fails, recovers and refuses events, is shown a newer executable, and removes a stored one that does not run.
func TestConsolePlugins(t *testing.T) { onDatabases(t, testConsolePlugins) }

func testConsolePlugins(t *testing.T, database []string) {
	dir := t.TempDir()
	loud := fmt.Sprintf("#!/bin/sh\ncat >&2 <<'END'\n%s\nEND\nexec '%s' plugin exec file\n", hostile, binary(t))
	executable := filepath.Join(dir, "loud")
	if err := os.WriteFile(executable, []byte(loud), 0o700); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(loud))
	s := startWith(t, instanceYAML("loud", "sink", executable, "path: "+filepath.Join(dir, "loud.ndjson"))+
		"      sha256: "+hex.EncodeToString(sum[:])+"\n", database...)
	s.execute(t, "INSERT INTO plugin_configs (name, plugin, kind, config, version, created_at, updated_at) VALUES ('former', 'file', 'gone', '{\"path\": \"/tmp/former\"}', 1, 1, 1)")
	posted, err := os.Create(filepath.Join(dir, "posted"))
	if err != nil {
		t.Fatal(err)
	}
	failing := filepath.Join(dir, "failing")
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(failing); err == nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		if _, err := os.Stat(failing + "-for-good"); err == nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		if r.Header.Get("Webhook-Signature") == "" {
			t.Error("a request of the webhook sink is not signed")
		}
		if _, err := io.Copy(posted, r.Body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(hook.Close)
	inBrowser(t, s, "plugins.mjs", map[string]any{
		"copy": filepath.Join(s.data, "plugin-files", "copy.ndjson"), "moved": filepath.Join(s.data, "plugin-files", "moved.ndjson"),
		"lines": s.lines, "hook": hook.URL, "posted": posted.Name(), "failing": failing, "loud": executable,
	})
}

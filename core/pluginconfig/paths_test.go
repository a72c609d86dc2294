package pluginconfig_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/pluginconfig"
)

// setPath configures a field of the plugin post that names a local file.
func setPath(t *testing.T, n *node, field, value string) error {
	t.Helper()
	_, err := n.Set(t.Context(), who, pathChange(field, value))
	return err
}

func pathChange(field, value string) pluginconfig.Change {
	config := map[string]any{"url": "x"}
	switch field {
	case "tls.ca_file":
		config["tls"] = map[string]any{"ca_file": value}
	case "files.0":
		config["files"] = []any{value}
	default:
		config[field] = value
	}
	return pluginconfig.Change{Name: "a", Plugin: "post", Kind: "sink", Config: config, Version: -1}
}

// A config of the API names local files in one directory only.
func TestLocalPathsAreInOneDirectory(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	n := newNode(t, dbtest.SQLite(t), data, fileWith())
	dir := filepath.Join(data, "plugin-files")
	if err := setPath(t, n, "path", "events.ndjson"); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	for name, to := range map[string]string{"out": outside, "dangling": filepath.Join(outside, "none"), "in": filepath.Join(dir, "made")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "made"), 0o750); err != nil {
		t.Fatal(err)
	}
	var refusal string
	for _, path := range []string{
		filepath.Join(data, "guidon.db"), "../guidon.db", "a/../../guidon.db", filepath.Join(dir, "..", "guidon.db"), dir + "/../guidon.db",
		"/etc/passwd", "/none/at/all", "out/file", filepath.Join(dir, "out"), "dangling", "dangling/file", dir + "-2/file", "a\x00b",
	} {
		for _, field := range []string{"path", "tls.ca_file", "files.0"} {
			err := setPath(t, n, field, path)
			got := fault.From(err)
			if err == nil || fault.CodeOf(err) != "path_not_allowed" || got.Attr != "config."+field || !strings.Contains(got.Detail, dir) {
				t.Errorf("%s %q: %v", field, path, err)
				continue
			}
			if refusal == "" {
				refusal = got.Detail
			}
			if got.Detail != refusal {
				t.Errorf("%q: the text differs, which tells of the files: %s", path, got.Detail)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is made: %v", err)
	}
	for _, path := range []string{"", ".", "deep/down/events.ndjson", filepath.Join(dir, "events.ndjson"), "in/events.ndjson", "..events"} {
		for _, field := range []string{"path", "tls.ca_file", "files.0"} {
			if err := setPath(t, n, field, path); err != nil {
				t.Errorf("%s %q: %v", field, path, err)
			}
		}
	}
}

// The parameters of a URL of PostgreSQL name no other files either.
func TestFilesOfPostgresURL(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	n := newNode(t, dbtest.SQLite(t), data, fileWith())
	const url = "postgres://u:p@db.example.com/name"
	for value, code := range map[string]string{
		url: "", url + "?sslmode=verify-full&sslrootcert=system": "", "postgresql://h/d?sslrootcert=" + filepath.Join(data, "plugin-files", "ca.pem"): "",
		url + "?sslrootcert=/etc/passwd": "path_not_allowed", url + "?sslkey=key.pem": "path_not_allowed", url + "?sslcert=/etc/passwd": "path_not_allowed",
		url + "?passfile=/etc/shadow": "path_not_allowed", url + "?servicefile=/a&servicefile=" + filepath.Join(data, "plugin-files", "b"): "path_not_allowed",
		"host=h passfile=/etc/shadow": "invalid_config", "x:///=1 passfile=/etc/shadow": "invalid_config", "POSTGRES://h/d?sslkey=/etc/passwd": "invalid_config",
	} {
		err := setPath(t, n, "database", value)
		if got := fault.From(err); code == "" && err != nil || code != "" && (fault.CodeOf(err) != code || got.Attr != "config.database" || strings.Contains(got.Detail, "u:p")) {
			t.Errorf("%s: %v; want %q", value, err, code)
		}
	}
}

// The plugin gets absolute paths. A stored config with a path outside of the directory, of an
// earlier version or of a node with another data directory, does not run; one of the file does.
func TestStoredPathsAreCheckedOnEachNode(t *testing.T) {
	t.Parallel()
	d, data := dbtest.SQLite(t), t.TempDir()
	if err := setPath(t, newNode(t, d, data, fileWith()), "path", "deep/events.ndjson"); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, d, data, fileWith(settings.Instance{Name: "filed", Use: "post", Kind: "sink", Config: map[string]any{"url": "x", "path": "/etc/passwd"}}))
	shown, err := n.Get(t.Context(), "a")
	if err != nil || shown.Config["path"] != "deep/events.ndjson" || !strings.Contains(shown.YAML, "path: "+filepath.Join(data, "plugin-files")) {
		t.Errorf("%v, %v: the file has its own directory for relative paths: %s", shown.Config, err, shown.YAML)
	}
	stored := n.instances.Stored()
	if got := n.names(); !slices.Equal(got, []string{"filed", "a"}) || stored[0].Config["path"] != filepath.Join(data, "plugin-files", "deep", "events.ndjson") {
		t.Errorf("%v with %v", got, stored)
	}
	outside := `{"url": "x", "path": "/etc/passwd"}`
	if _, err := d.Write(t.Context()).NewUpdate().Table("plugin_configs").Set("config = ?", outside).Where("name = 'a'").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	n = newNode(t, d, data, fileWith())
	left := n.instances.LeftOut()
	if got := n.names(); len(got) != 0 || len(left) != 1 || !strings.Contains(left[0].LastError, "plugin-files") {
		t.Errorf("%v run, left out %+v", got, left)
	}
}

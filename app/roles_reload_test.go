package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

// A server that only reads the database applies a config that has changed, on request
// and by itself, writes nothing, and explains what it cannot do. Requests that belong to
// other servers are warnings in its log.
func TestDecideOnlyReloads(t *testing.T) {
	t.Parallel()
	postgres := dbtest.PostgresURL(t)
	all := serve(t, func(c *app.Config) { c.Database.URL = postgres })
	core, lines := observer.New(zapcore.DebugLevel)
	config := filepath.Join(t.TempDir(), "guidon.yaml")
	environ := []string{"GUIDON_DATABASE_URL=" + all.readerOf(t, postgres), "GUIDON_ROLES=decide", "GUIDON_DATA_DIR=" + filepath.Join(filepath.Dir(config), "data"),
		"GUIDON_HTTP_ADDRESS=127.0.0.1:0", "GUIDON_HTTP_ADMIN_ADDRESS=127.0.0.1:0"}
	sink := "plugins: {instances: [{name: lines, kind: sink, use: file, config: {path: " + filepath.Join(t.TempDir(), "lines") + "}}]}\n"
	edit := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit("activity: {retention: 24h}\n" + sink)
	cfg, err := app.Load(config, environ)
	if err != nil {
		t.Fatal(err)
	}
	edge := serveWith(t, func(o *app.Options) {
		o.Log, o.ConfigFile, o.Environ = zap.New(core), config, func() []string { return environ }
	}, func(c *app.Config) { *c = cfg })
	edge.ProjectKey, edge.PersonalKey = all.ProjectKey, all.PersonalKey

	edit("activity: {retention: 48h}\n" + sink)
	edge.until(t, "the change of the file is applied", func() bool { return lines.FilterMessage("config reloaded").Len() == 1 })
	edit("activity: {retention: 72h}\n" + sink)
	status, answer, _ := edge.request(t, http.MethodPost, edge.AdminURL+"/api/plugins/reload", "")
	if status != http.StatusOK {
		t.Errorf("reload: %d %s", status, answer)
	}
	status, answer, _ = edge.request(t, http.MethodGet, edge.URL+"/api/projects/1/feature_flags/", "")
	if status != http.StatusServiceUnavailable || !strings.Contains(answer, "role manage") || !strings.Contains(answer, "it has decide.") || !strings.Contains(answer, "guidon cluster status") {
		t.Errorf("a request for another server: %d %s", status, answer)
	}
	for path, want := range map[string]int{"/api/plugins/lines/restart": http.StatusOK, "/api/plugins/lines/pause": http.StatusServiceUnavailable} {
		status, answer, _ := edge.request(t, http.MethodPost, edge.AdminURL+path, "")
		if status != want || want != http.StatusOK && !strings.Contains(answer, "only reads the database") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	misdirected := 0
	for _, l := range lines.All() {
		text := fmt.Sprint(l.Level, " ", l.Message, " ", l.ContextMap())
		switch {
		case l.ContextMap()["code"] == "role_missing" && l.Level == zapcore.WarnLevel:
			misdirected++
		case l.Level > zapcore.WarnLevel, strings.Contains(text, "read-only transaction"), strings.Contains(text, "permission denied"):
			t.Error(text)
		}
	}
	if misdirected != 2 {
		t.Errorf("%d warnings of requests for other servers, want 2", misdirected)
	}
	if _, answer, _ := all.request(t, http.MethodGet, all.URL+"/api/organizations/@current/activity_log/?scope=Plugin", ""); strings.Contains(answer, "reloaded") {
		t.Errorf("the reload is in the activity log: %s", answer)
	}
}

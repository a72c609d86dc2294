package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"
)

// TestMain lets the test binary serve as the bundled plugins, as guidon does, and as
// the servers of the benchmarks.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "plugin" && os.Args[2] == "exec" {
		if os.Args[3] == "noop" {
			sdk.Serve(noopPlugin())
			return
		}
		if plugin, ok := plugins.Find(os.Args[3]); ok {
			sdk.Serve(plugin)
			return
		}
	}
	dir := os.Getenv("GUIDON_TEST_DIR")
	switch os.Getenv(serveEnv) {
	case "floor":
		serveFixedAnswer()
	case "bare":
		serveGroupCommit(dir)
	case "accept":
		serveCapture(dir)
	case "sustained":
		serveSustained(dir)
	case "whole":
		serveAll(dir)
	case "acting":
		serveWithActions(dir)
	default:
		os.Exit(m.Run())
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// server is a whole server in the process of the test, with a data directory of its
// own and one file sink.
type server struct {
	*app.Server
	ProjectKey, PersonalKey, Lines string
}

// serve starts a server and stops it at the end of the test.
func serve(t *testing.T, change ...func(*app.Config)) *server {
	t.Helper()
	s := serveExisting(t, change...)
	ready := s.DB.IsReady()
	select {
	case <-s.Bootstrapped():
	case <-time.After(2 * time.Minute):
		t.Fatal("no first accounts")
	}
	s.ProjectKey, s.PersonalKey = s.First.ProjectKey, s.First.PersonalKey
	if !ready { // the migration of Postgres takes seconds on a slow machine
		s.until(t, "the server has its data", func() bool {
			managed, _, _ := s.request(t, http.MethodGet, s.URL+"/api/projects/1/feature_flags/", "")
			decided, _, _ := s.request(t, http.MethodPost, s.URL+"/decide?v=3", `{"api_key":"`+s.ProjectKey+`","distinct_id":"u"}`)
			return managed == http.StatusOK && decided == http.StatusOK
		})
	}
	return s
}

// serveExisting is serve for a database that may hold accounts or be away.
func serveExisting(t *testing.T, change ...func(*app.Config)) *server {
	t.Helper()
	return serveLogged(t, zap.NewNop(), change...)
}

// serveLogged is serveExisting with a log.
func serveLogged(t *testing.T, log *zap.Logger, change ...func(*app.Config)) *server {
	t.Helper()
	return serveWith(t, func(o *app.Options) { o.Log = log }, change...)
}

// serveWith is serveExisting with other options.
func serveWith(t *testing.T, set func(*app.Options), change ...func(*app.Config)) *server {
	t.Helper()
	cfg, opts, lines := prepare(t, change...)
	set(&opts)
	s, err := app.Start(t.Context(), cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return &server{Server: s, Lines: lines}
}

// prepare returns the configuration and the options of a server with a directory of its
// own, and the file of its sink.
func prepare(t *testing.T, change ...func(*app.Config)) (cfg app.Config, opts app.Options, lines string) {
	t.Helper()
	dir := t.TempDir()
	lines = filepath.Join(dir, "events.ndjson")
	cfg, err := app.Load(file(t, "plugins:\n  instances:\n    - name: lines\n      kind: sink\n      use: file\n      config: {path: "+lines+"}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DataDir = filepath.Join(dir, "data")
	cfg.HTTP.Address, cfg.HTTP.AdminAddress = "127.0.0.1:0", "127.0.0.1:0"
	cfg.HTTP.ManageRate, cfg.HTTP.FailedKeyRate = web.Rate{}, web.Rate{} // tests poll, and try many wrong keys from one address
	cfg.Flags.LookupTimeout = 30 * time.Second                           // tests check answers: a busy machine must not fail them
	for _, c := range change {
		c(&cfg)
	}
	return cfg, app.Options{Version: "test", Log: zap.NewNop(), BundledNames: plugins.Names(), Operators: plugins.Operators,
		Environ: func() []string { return []string{"GUIDON_HTTP_FAILED_KEY_RATE_PER_SECOND=0"} }, // also after a reload
		Bundled: func(name string) []string { return []string{os.Args[0], "plugin", "exec", name} }}, lines
}

// url returns the URL of a path: pages and actions for operators are on the admin
// address.
func (s *server) url(path string) string {
	for _, prefix := range []string{"/api/plugins", "/_readiness", "/metrics", "/debug/"} {
		if strings.HasPrefix(path, prefix) {
			return s.AdminURL + path
		}
	}
	return s.URL + path
}

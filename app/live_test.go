package app_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/activity/chain"
)

// liveServer is a server whose config file a test changes.
type liveServer struct {
	server
	file  string
	logs  *observer.ObservedLogs
	level zap.AtomicLevel
}

func startLive(t *testing.T, hangup ...chan os.Signal) *liveServer {
	t.Helper()
	dir := t.TempDir()
	s := &liveServer{file: filepath.Join(dir, "guidon.yaml"), level: zap.NewAtomicLevelAt(zapcore.InfoLevel)}
	s.write(t, "")
	environ := []string{"GUIDON_DATA_DIR=" + filepath.Join(dir, "data"), "GUIDON_HTTP_ADDRESS=127.0.0.1:0", "GUIDON_HTTP_ADMIN_ADDRESS=127.0.0.1:0"}
	cfg, err := app.Load(s.file, environ)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(s.level)
	s.logs = logs
	opts := app.Options{Version: "test", Log: zap.New(core), LogLevel: &s.level, ConfigFile: s.file, Environ: func() []string { return environ }}
	if len(hangup) > 0 {
		opts.Hangup = hangup[0]
	}
	s.Server, err = app.Start(t.Context(), cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	s.ProjectKey, s.PersonalKey = s.First.ProjectKey, s.First.PersonalKey
	return s
}

// write replaces the config file by a rename.
func (s *liveServer) write(t *testing.T, text string) {
	t.Helper()
	text += "\nplugins: {log_level: info}\n" // an empty file is never complete
	if err := os.WriteFile(s.file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.file+".new", s.file); err != nil {
		t.Fatal(err)
	}
}

// reloads returns the settings that reloads named in a field of their lines.
func (s *liveServer) reloads(message, field string) []string {
	var out []string
	for _, l := range s.logs.FilterMessage(message).All() {
		for _, name := range l.ContextMap()[field].([]any) {
			out = append(out, name.(string))
		}
	}
	return out
}

// change writes a config and waits for the reload that names the setting.
func (s *liveServer) change(t *testing.T, text, key string) {
	t.Helper()
	s.logs.TakeAll()
	s.write(t, text)
	waitFor(t, "the reload of "+key, func() bool { return slices.Contains(s.reloads("config reloaded", "applied"), key) })
}

// get returns the status, the headers and the body of a request.
func (s *liveServer) do(t *testing.T, method, path, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, _ := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, string(answer)
}

func (s *liveServer) manage(t *testing.T, path string, headers ...string) (int, http.Header, string) {
	t.Helper()
	return s.do(t, "GET", path, "", append(headers, "Authorization: Bearer "+s.PersonalKey)...)
}

func (s *liveServer) capture(t *testing.T) (int, string) {
	t.Helper()
	status, _, body := s.do(t, "POST", "/capture/", fmt.Sprintf(`{"api_key":%q,"event":"e","distinct_id":"d"}`, s.ProjectKey))
	return status, body
}

// liveCase changes a setting. effect returns whether the server behaves accordingly; nil
// for settings whose effect takes minutes.
type liveCase struct {
	text   string
	effect func(t *testing.T, s *liveServer) bool
}

func statusIs(want int, path string, headers ...string) func(*testing.T, *liveServer) bool {
	return func(t *testing.T, s *liveServer) bool {
		status, _, _ := s.manage(t, path, headers...)
		return status == want
	}
}

func captureIs(want string) func(*testing.T, *liveServer) bool {
	return func(t *testing.T, s *liveServer) bool {
		status, body := s.capture(t)
		return strings.Contains(fmt.Sprint(status, " ", body), want)
	}
}

// logged reports whether a successful management read has a line, with the field.
func logged(want bool, field string) func(*testing.T, *liveServer) bool {
	return func(t *testing.T, s *liveServer) bool {
		s.logs.TakeAll()
		s.manage(t, "/api/projects/1/")
		s.manage(t, "/api/projects/1/")
		lines := s.logs.FilterMessage("request").All()
		return want == (len(lines) > 0 && (field == "" || lines[0].ContextMap()[field] != nil))
	}
}

var liveCases = map[string]liveCase{
	"log.level": {"log: {level: debug}", func(_ *testing.T, s *liveServer) bool { return s.level.Level() == zapcore.DebugLevel }},

	"http.access_log": {"http: {access_log: broken}", logged(false, "")},
	"http.access_sample": {"http: {access_sample: 1}", func(t *testing.T, s *liveServer) bool {
		return logged(true, "")(t, s) && s.logs.FilterMessage("request").Len() == 2
	}},
	"http.log_client": {"http: {access_sample: 1, log_client: false}", func(t *testing.T, s *liveServer) bool { return logged(true, "")(t, s) && logged(false, "client")(t, s) }},
	"http.manage_origins": {"http: {manage_origins: ['https://app.example.com']}", func(t *testing.T, s *liveServer) bool {
		_, headers, _ := s.manage(t, "/api/projects/1/", "Origin: https://app.example.com")
		return headers.Get("Access-Control-Allow-Origin") == "https://app.example.com"
	}},
	"http.request_timeout":            {"http: {request_timeout: 1ns}", statusIs(503, "/api/projects/1/persons/?search=a")},
	"http.manage_rate.per_second":     {"http: {manage_rate: {per_second: 0.01, burst: 1}}", statusIs(429, "/api/projects/1/")},
	"http.manage_rate.burst":          {"http: {manage_rate: {per_second: 0.01, burst: 2}}", statusIs(429, "/api/projects/1/")},
	"http.public_rate.per_second":     {"http: {public_rate: {per_second: 0.01, burst: 0}}", captureIs("429")},
	"http.public_rate.burst":          {"http: {public_rate: {per_second: 0.01, burst: 1}}", captureIs("429")},
	"http.failed_key_rate.per_second": {"http: {failed_key_rate: {per_second: 0.01, burst: 100}}", nil},
	"http.failed_key_rate.burst": {"http: {failed_key_rate: {per_second: 0.01, burst: 1}}", func(t *testing.T, s *liveServer) bool {
		status, _, _ := s.do(t, "GET", "/api/projects/1/", "", "Authorization: Bearer phx_unknown0000000000000000000000000000000000000")
		return status == 429
	}},

	"http.trusted_proxies": {"http: {trusted_proxies: []}", func(t *testing.T, s *liveServer) bool { // 127.0.0.1 is not trusted
		status, _, _ := s.do(t, "PATCH", "/api/organizations/@current/", `{"name":"renamed"}`, "Authorization: Bearer "+s.PersonalKey, "Content-Type: application/json", "X-Forwarded-For: 203.0.113.9")
		_, _, log := s.manage(t, "/api/organizations/@current/activity_log/?scope=Organization&limit=1")
		return status == 200 && strings.Contains(log, `"client_address":"127.0.0.1"`)
	}},
	"journal.max_bytes": {"journal: {max_bytes: 1}", nil},
	"journal.max_age":   {"journal: {max_age: 1ns}", nil},

	"ingestion.quota.projects": {`ingestion: {quota: {projects: {"1": 1}}}`, captureIs("quota_limited")},
	"ingestion.quota.events":   {"ingestion: {quota: {events: 1}}", captureIs("quota_limited")},
	"ingestion.quota.period": {"ingestion: {quota: {period: hour}}", func(t *testing.T, s *liveServer) bool {
		_, _, body := s.manage(t, "/api/projects/1/ingestion_usage/")
		return strings.Contains(body, `"hour"`)
	}},
	"ingestion.keep_warnings":     {"ingestion: {keep_warnings: 1h}", nil},
	"ingestion.keep_dead_letters": {"ingestion: {keep_dead_letters: 1h}", nil},
	"activity.retention": {"activity: {retention: 1ns}", func(t *testing.T, s *liveServer) bool {
		_, _, body := s.manage(t, "/api/organizations/@current/activity_log/?scope=Organization")
		return strings.Contains(body, `"total_count":0`)
	}},
	"notifications.every":           {"notifications: {every: 1m}", nil},
	"notifications.burst":           {"notifications: {burst: 2}", nil},
	"notifications.expire_after":    {"notifications: {expire_after: 2h}", nil},
	"notifications.max_attempts":    {"notifications: {max_attempts: 2}", nil},
	"notifications.keep_deliveries": {"notifications: {keep_deliveries: 2h}", nil},
}

// Every live setting takes effect in a running server when the file changes, and no
// request fails meanwhile.
func TestLiveSettingsTakeEffect(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	for _, key := range app.LiveKeys() {
		if _, ok := liveCases[key]; !ok && !strings.HasPrefix(key, "plugins.") {
			t.Errorf("live setting %s: add a case", key)
		}
	}
	if status, _, body := s.do(t, "PATCH", "/api/organizations/@current/", `{"name":"renamed"}`, "Authorization: Bearer "+s.PersonalKey, "Content-Type: application/json"); status != 200 {
		t.Fatalf("rename: %d %s", status, body)
	}
	var requests, failed atomic.Int64
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			res, err := http.Get(s.URL + "/_liveness")
			if err != nil || res.StatusCode != http.StatusOK {
				failed.Add(1)
			}
			if err == nil {
				_ = res.Body.Close()
			}
			requests.Add(1)
		}
	}()
	for key, c := range liveCases {
		if key == "activity.retention" {
			waitFor(t, "the seal", func() bool { // only sealed entries are removed, and other cases make new ones
				n, err := chain.New(s.DB).CountUnsealed(t.Context())
				return err == nil && n == 0
			})
		}
		s.change(t, c.text, key)
		if c.effect != nil {
			waitFor(t, "the effect of "+key, func() bool { return c.effect(t, s) })
		}
		if key == "http.manage_origins" {
			waitFor(t, "the entry of the activity log", func() bool {
				_, _, log := s.manage(t, "/api/organizations/@current/activity_log/?scope=Plugin")
				return strings.Contains(log, `"field":"http.manage_origins"`)
			})
		}
		s.change(t, "", key)
		if status, _, body := s.manage(t, "/api/projects/1/"); status != 200 {
			t.Errorf("after %s: status %d: %s", key, status, body)
		}
		if status, body := s.capture(t); status != 200 || strings.Contains(body, "quota_limited") {
			t.Errorf("capture after %s: status %d: %s", key, status, body)
		}
	}
	close(stop)
	<-done
	if failed.Load() > 0 || requests.Load() == 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), requests.Load())
	}
}

// A config file that is empty or missing resets no setting, also at a hangup.
func TestEmptyFilesChangeNoLiveSetting(t *testing.T) {
	t.Parallel()
	hangup := make(chan os.Signal, 1)
	s := startLive(t, hangup)
	s.change(t, "log: {level: debug}", "log.level")
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(s.file, []byte(" \n"), 0o600) },
		func() error { return os.Remove(s.file) },
	} {
		s.logs.TakeAll()
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		hangup <- syscall.SIGHUP
		waitFor(t, "the error", func() bool { return s.logs.FilterMessage("config reload failed; nothing was changed").Len() > 0 })
		if s.level.Level() != zapcore.DebugLevel {
			t.Fatal("the level was reset")
		}
	}
	s.change(t, "", "log.level")
}

func TestInvalidFilesChangeNoLiveSetting(t *testing.T) {
	t.Parallel()
	s := startLive(t)
	s.logs.TakeAll()
	s.write(t, "log: {level: debug}\nhttp: {access_log: some}")
	waitFor(t, "the error", func() bool { return s.logs.FilterMessage("config reload failed; nothing was changed").Len() > 0 })
	if s.level.Level() != zapcore.InfoLevel {
		t.Error("the level has changed")
	}
	s.change(t, "log: {level: debug}\njournal: {dir: elsewhere}\nhttp: {json_depth: 77}", "log.level")
	if got := fmt.Sprint(s.reloads("changed settings need a restart", "settings")); got != "[http.json_depth journal.dir]" {
		t.Errorf("settings that need a restart: %s", got)
	}
}

// docs/operators.md lists the live settings.
func TestLiveSettingsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/operators.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Change settings without a restart\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for row := range strings.SplitSeq(section, "\n") {
		if cells := strings.Split(row, "|"); len(cells) > 2 && strings.Contains(cells[1], "`") {
			documented = append(documented, strings.Trim(cells[1], " `"))
		}
	}
	var want []string
	for _, key := range app.LiveKeys() {
		if !strings.HasPrefix(key, "plugins.") {
			want = append(want, key)
		}
	}
	if slices.Sort(documented); !slices.Equal(documented, want) {
		t.Errorf("documented:\n%s\nlive:\n%s", strings.Join(documented, "\n"), strings.Join(want, "\n"))
	}
}

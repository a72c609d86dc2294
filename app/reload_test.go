package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/plugins"
	"github.com/guidonhq/guidon/sdk"
)

// reloadServer is a server whose config file tests change while it runs.
type reloadServer struct {
	server
	dir, config string
	logs        *observer.ObservedLogs

	mu    sync.Mutex
	acked []string // uuids of events, in order
}

// serveConfigFile starts a server on a config file with these plugin instances.
func serveConfigFile(t *testing.T, instances string) *reloadServer {
	t.Helper()
	dir := t.TempDir()
	e := &reloadServer{dir: dir, config: filepath.Join(dir, "guidon.yaml")}
	e.edit(t, instances)
	environ := []string{"GUIDON_DATA_DIR=" + filepath.Join(dir, "data"), "GUIDON_HTTP_ADDRESS=127.0.0.1:0", "GUIDON_HTTP_ADMIN_ADDRESS=127.0.0.1:0"}
	cfg, err := app.Load(e.config, environ)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	e.logs = logs
	e.Server, err = app.Start(t.Context(), cfg, app.Options{
		Version: "test", Log: zap.New(core), BundledNames: plugins.Names(), ConfigFile: e.config, Environ: func() []string { return environ },
		Bundled: func(name string) []string {
			if _, ok := plugins.Find(name); !ok {
				return nil
			}
			return []string{os.Args[0], "plugin", "exec", name}
		},
		Schema: sinkSchema,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	e.ProjectKey, e.PersonalKey = e.First.ProjectKey, e.First.PersonalKey
	return e
}

// sinkSchema returns the schema of a bundled sink.
func sinkSchema(name, kind string) []byte {
	if p, ok := plugins.Find(name); ok && kind == "sink" && p.Sink != nil {
		if c, ok := p.Sink().(sdk.Configured); ok {
			return sdk.Schema(c.Config())
		}
	}
	return nil
}

// edit replaces the config file by a rename, as editors do.
func (e *reloadServer) edit(t *testing.T, instances string) {
	t.Helper()
	text := "plugins:\n  instances:\n" + instances
	if err := os.WriteFile(e.config+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(e.config+".new", e.config); err != nil {
		t.Fatal(err)
	}
}

// sink returns the config of a file sink instance.
func (e *reloadServer) sink(name, more string) string {
	return fmt.Sprintf("    - {name: %s, kind: sink, use: file, config: {path: %s%s}}\n", name, e.path(name), more)
}

func (e *reloadServer) path(name string) string { return filepath.Join(e.dir, name+".ndjson") }

// capture sends events until ctx ends, one per request.
func (e *reloadServer) capture(t *testing.T, ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		uuid := fmt.Sprintf("0190aaaa-0000-7000-8000-%012d", n)
		body := fmt.Sprintf(`{"api_key":%q,"event":"flow","distinct_id":"d%d","uuid":%q}`, e.ProjectKey, n%7, uuid)
		res, err := http.Post(e.URL+"/capture/", "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("status %d", res.StatusCode)
			return
		}
		e.mu.Lock()
		e.acked = append(e.acked, uuid)
		e.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// acceptedCount returns the number of accepted events.
func (e *reloadServer) acceptedCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.acked)
}

// sinkEvents counts the uuids in the file of a sink.
func (e *reloadServer) sinkEvents(t *testing.T, name string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(e.path(name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	out := map[string]int{}
	for line := range bytes.Lines(text) {
		var event struct{ UUID string }
		if json.Unmarshal(line, &event) == nil {
			out[event.UUID]++
		}
	}
	return out
}

// pluginState is an instance in the answer of GET /api/plugins/.
type pluginState struct {
	Name, State, Reason string
	LastError           string `json:"last_error"`
	Generation          uint64
	PID                 int
}

// plugins returns the states of the instances by name.
func (e *reloadServer) plugins(t *testing.T) map[string]pluginState {
	t.Helper()
	var page struct{ Results []pluginState }
	if err := json.Unmarshal([]byte(e.mustManage(t, http.MethodGet, "/api/plugins/", "")), &page); err != nil {
		t.Fatal(err)
	}
	out := map[string]pluginState{}
	for _, p := range page.Results {
		out[p.Name] = p
	}
	return out
}

// waitAccepted waits until n more events are accepted and returns the total.
func (e *reloadServer) waitAccepted(t *testing.T, n int) int {
	t.Helper()
	from := e.acceptedCount()
	e.until(t, "events flow", func() bool { return e.acceptedCount() >= from+n })
	return e.acceptedCount()
}

// TestConfigReload adds, changes and removes sinks by edits of the config file under
// load: each sink gets every event since it was added exactly once.
func TestConfigReload(t *testing.T) {
	t.Parallel()
	e := serveConfigFile(t, "")
	e.edit(t, e.sink("a", ""))
	e.until(t, "a is ready", func() bool { return e.plugins(t)["a"].State == "ready" })
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { e.capture(t, ctx) })
	defer wg.Wait()
	defer stop()
	e.waitAccepted(t, 20)

	e.edit(t, e.sink("a", "")+e.sink("b", ""))
	e.until(t, "b is added", func() bool { return e.plugins(t)["b"].State == "ready" })
	since := e.waitAccepted(t, 20)

	e.edit(t, e.sink("a", ", rotate_bytes: 0")+e.sink("b", ""))
	e.until(t, "a is changed", func() bool { p := e.plugins(t)["a"]; return p.State == "ready" && p.Generation == 2 })
	e.waitAccepted(t, 20)

	e.edit(t, e.sink("a", ", rotate_bytes: 0"))
	e.until(t, "b is removed", func() bool { _, there := e.plugins(t)["b"]; return !there })
	e.waitAccepted(t, 20)

	// An invalid config is logged and changes nothing.
	serving := e.plugins(t)["a"]
	for _, broken := range []string{"    - {name: a, kind: sink,\n", "    - {name: a, kind: sink, use: file, cofnig: {}}\n", e.sink("a", "") + e.sink("a", "")} {
		logged := e.logs.FilterMessageSnippet("config reload failed").Len()
		e.edit(t, broken)
		e.until(t, "the broken file is noticed", func() bool { return e.logs.FilterMessageSnippet("config reload failed").Len() > logged })
		if now := e.plugins(t); len(now) != 1 || now["a"] != serving {
			t.Errorf("with %q: %+v, was %+v", broken, now, serving)
		}
		req, err := http.NewRequest(http.MethodPost, e.url("/api/plugins/reload/"), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+e.PersonalKey)
		if status, answer := e.send(t, req); status != http.StatusBadRequest || !strings.Contains(answer, "invalid_config") {
			t.Errorf("reload: %d %s", status, answer)
		}
	}
	e.waitAccepted(t, 20)

	// A wrong checksum affects one instance only.
	e.edit(t, e.sink("a", ", rotate_bytes: 0")+e.sink("b", "")+
		"    - {name: c, kind: sink, use: /bin/true, sha256: "+strings.Repeat("ab", 32)+"}\n")
	e.until(t, "b is ready and c is untrusted", func() bool {
		now := e.plugins(t)
		return now["a"].State == "ready" && now["b"].State == "ready" && now["c"].State == "untrusted"
	})
	e.waitAccepted(t, 20)
	stop()
	wg.Wait()

	e.until(t, "everything is in both files", func() bool {
		a, b := e.sinkEvents(t, "a"), e.sinkEvents(t, "b")
		for i, uuid := range e.acked {
			if a[uuid] == 0 || i >= since && b[uuid] == 0 {
				return false
			}
		}
		return true
	})
	for _, name := range []string{"a", "b"} {
		for uuid, n := range e.sinkEvents(t, name) {
			if n != 1 {
				t.Errorf("%s has %s %d times", name, uuid, n)
			}
		}
	}
}

// The directory of the config may contain a file that changes all the time, such as a log.
func TestReloadWhileOtherFilesChange(t *testing.T) {
	t.Parallel()
	e := serveConfigFile(t, "    []\n")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer func() { close(stop); wg.Wait() }()
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				_ = os.WriteFile(filepath.Join(e.dir, "log"), []byte(time.Now().String()), 0o600)
			}
		}
	})
	e.edit(t, e.sink("a", ""))
	e.until(t, "the change is noticed", func() bool { return len(e.plugins(t)) == 1 })
}

// A dry run tells what a reload would do to each instance, and does nothing.
func TestReloadDryRun(t *testing.T) {
	t.Parallel()
	e := serveConfigFile(t, "    []\n")
	e.edit(t, e.sink("same", "")+e.sink("config", "")+e.sink("delivery", "")+e.sink("removed", "")+e.sink("broken", ""))
	e.until(t, "all are ready", func() bool {
		for _, p := range e.plugins(t) {
			if p.State != "ready" {
				return false
			}
		}
		return len(e.plugins(t)) == 5
	})
	before := e.plugins(t)
	other := filepath.Join(e.dir, "other")
	if err := os.WriteFile(other, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	// Written in place, the file is not applied before the dry run.
	text := "log: {level: debug}\nhttp: {json_depth: 77}\nplugins:\n  instances:\n" + e.sink("same", "") + e.sink("config", ", rotate_bytes: 0") +
		strings.Replace(e.sink("delivery", ""), "}}\n", "}, delivery: {sample: 0.5}}\n", 1) + e.sink("broken", ", pth: x") + e.sink("added", "") +
		"    - {name: unknown, kind: sink, use: flie}\n" +
		"    - {name: secret, kind: sink, use: file, config: {path: \"${env:GUIDON_TEST_MISSING}\"}}\n" +
		"    - {name: untrusted, kind: sink, use: " + other + ", sha256: " + strings.Repeat("ab", 32) + "}\n"
	if err := os.WriteFile(e.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var plan struct {
		DryRun        bool `json:"dry_run"`
		Applied       []string
		RestartNeeded []string `json:"restart_needed"`
		Added         []string
		Instances     []struct {
			Name, Action, Reason string
			Settings             []string
		}
	}
	if err := json.Unmarshal([]byte(e.mustManage(t, http.MethodPost, "/api/plugins/reload?dry_run=true", "")), &plan); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"same": "unchanged []", "config": "restart [config.rotate_bytes]", "delivery": "reconfigure [delivery]", "removed": "stop []it is not in the config",
		"broken": `refused [config.pth]config/pth: unknown key (did you mean "path"?); the former settings stay in use if it runs`, "added": "start []",
		"unknown": `refused []no bundled plugin is named "flie"; did you mean "file"?`, "secret": "refused []config/path: ${env:GUIDON_TEST_MISSING}", "untrusted": "refused []not trusted: the checksum of ",
	}
	for _, i := range plan.Instances {
		if got := fmt.Sprint(i.Action, " ", i.Settings, i.Reason); want[i.Name] == "" || !strings.HasPrefix(got, want[i.Name]) {
			t.Errorf("%s: got %s, want %s", i.Name, got, want[i.Name])
		}
		delete(want, i.Name)
	}
	if len(want) > 0 || !plan.DryRun || fmt.Sprint(plan.Applied, plan.RestartNeeded) != "[log.level] [http.json_depth]" {
		t.Errorf("got %+v, missing %v", plan, want)
	}
	if after := e.plugins(t); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the instances are %v, were %v", after, before)
	}
	if copies, _ := filepath.Glob(filepath.Join(e.dir, "data", "plugins", "*", "*")); len(copies) > 0 {
		t.Errorf("files were made: %s", copies)
	}
}

// A file that is written in two steps, with a pause between them, is read once it is
// complete: no plugin is removed on the way.
func TestReloadWaitsForTheWholeFile(t *testing.T) {
	t.Parallel()
	e := serveConfigFile(t, "    []\n")
	e.edit(t, e.sink("a", ""))
	e.until(t, "a is ready", func() bool { return e.plugins(t)["a"].State == "ready" })
	before := e.plugins(t)["a"]

	f, err := os.OpenFile(e.config, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	writeSlowly(t, f, "plugins:\n  instances:\n", e.sink("b", ""), e.sink("a", ""))
	e.until(t, "b is ready", func() bool { return e.plugins(t)["b"].State == "ready" })
	if after := e.plugins(t)["a"]; after != before {
		t.Errorf("a is %+v, was %+v", after, before)
	}
	if n := e.logs.FilterMessageSnippet("config reload").Len(); n != 2 {
		t.Errorf("%d reloads, want one for each change", n)
	}
}

// An empty file is not a configuration without plugins, also when a reload is requested.
func TestReloadRefusesAnEmptyFile(t *testing.T) {
	t.Parallel()
	e := serveConfigFile(t, "    []\n")
	e.edit(t, e.sink("a", ""))
	e.until(t, "a is there", func() bool { return len(e.plugins(t)) == 1 })
	if err := os.Truncate(e.config, 0); err != nil {
		t.Fatal(err)
	}
	if answer := e.mustFailReload(t); !strings.Contains(answer, "is empty") || len(e.plugins(t)) != 1 {
		t.Errorf("got %s and %d plugins", answer, len(e.plugins(t)))
	}
}

// writeSlowly writes parts with pauses that are longer than the watch waits for a file
// that was replaced.
func writeSlowly(t *testing.T, f *os.File, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
		time.Sleep(700 * time.Millisecond)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A wrong delivery section is refused like any other key: nothing changes.
func TestReloadRefusesAWrongDelivery(t *testing.T) {
	t.Parallel()
	e := serveConfigFile(t, "    []\n")
	for section, says := range map[string]string{
		"{sample: 3}": "plugins.instances[0] (a): delivery.sample must be from 0 to 1",
		"{properties: [{key: a, operator: equals, value: b}]}": "delivery.properties[0]",
		"{retry: {on_exhausted: drop}}":                        "delivery.retry.on_exhausted",
	} {
		e.edit(t, strings.Replace(e.sink("a", ""), "}}\n", "}, delivery: "+section+"}\n", 1))
		answer := e.mustFailReload(t)
		if !strings.Contains(answer, says) {
			t.Errorf("%s: %s", section, answer)
		}
		if _, err := app.Load(e.config, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s at the start: %v", section, err)
		}
	}
	if len(e.plugins(t)) > 0 {
		t.Error("the sink was added")
	}
}

// mustFailReload requests a reload that is refused, and returns the answer.
func (e *reloadServer) mustFailReload(t *testing.T) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, e.AdminURL+"/api/plugins/reload/", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+e.PersonalKey)
	status, answer := e.send(t, req)
	if status != http.StatusBadRequest {
		t.Errorf("reload: %d %s", status, answer)
	}
	return answer
}

// TestPluginSecretsAreRedacted checks that a secret appears in no answer, log line
// or metric.
func TestPluginSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	const secret = "open-sesame-9f3c"
	endpoint := http.NewServeMux()
	endpoint.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no entry with "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	})
	url := listen(t, endpoint)
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hook := func(name, url string) string {
		return fmt.Sprintf("    - name: %s\n      kind: sink\n      use: webhook\n      config: {url: %q, headers: {Authorization: \"Bearer ${file:%s}\"}, allow_networks: [127.0.0.0/8]}\n", name, url, key)
	}
	e := serveConfigFile(t, hook("refused", url)+hook("wrong", "nonsense://${file:"+key+"}/"))
	body := fmt.Sprintf(`{"api_key":%q,"event":"e","distinct_id":"d"}`, e.ProjectKey)
	var shown strings.Builder
	e.until(t, "both have failed", func() bool {
		res, err := http.Post(e.URL+"/capture/", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		now := e.plugins(t)
		return strings.Contains(e.mustManage(t, http.MethodGet, "/api/plugins/refused/", ""), "401") && now["wrong"].State == "misconfigured"
	})
	for _, name := range []string{"refused", "wrong"} {
		shown.WriteString(e.mustManage(t, http.MethodGet, "/api/plugins/"+name+"/", ""))
		shown.WriteString(e.mustManage(t, http.MethodGet, "/api/plugins/"+name+"/logs/", ""))
		shown.WriteString(e.mustManage(t, http.MethodPost, "/api/plugins/"+name+"/check/", "{}"))
	}
	shown.WriteString(e.mustManage(t, http.MethodGet, "/metrics", ""))
	for _, entry := range e.logs.All() {
		fmt.Fprintf(&shown, "%s %v\n", entry.Message, entry.ContextMap())
	}
	if text := shown.String(); strings.Contains(text, secret) {
		at := strings.Index(text, secret)
		t.Errorf("the secret appears: %s", text[max(0, at-300):at+50])
	}
}

// listen serves h on a port of its own.
func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

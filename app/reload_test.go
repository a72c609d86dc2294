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
)

// edited is a server whose config file is edited while it runs.
type edited struct {
	server
	dir, config string
	logs        *observer.ObservedLogs

	mu    sync.Mutex
	acked []string // uuids of events, in order
}

// editing starts a server with the given plugins section.
func editing(t *testing.T, instances string) *edited {
	t.Helper()
	dir := t.TempDir()
	e := &edited{dir: dir, config: filepath.Join(dir, "guidon.yaml")}
	e.edit(t, instances)
	environ := []string{"GUIDON_DATA_DIR=" + filepath.Join(dir, "data"), "GUIDON_HTTP_ADDRESS=127.0.0.1:0"}
	cfg, err := app.Load(e.config, environ)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zapcore.DebugLevel)
	e.logs = logs
	e.Server, err = app.Start(t.Context(), cfg, app.Options{
		Version: "test", Log: zap.New(core), BundledNames: plugins.Names(), ConfigFile: e.config, Environ: func() []string { return environ },
		Bundled: func(name string) []string { return []string{os.Args[0], "plugin", "exec", name} },
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

// edit replaces the config file, as an editor does.
func (e *edited) edit(t *testing.T, instances string) {
	t.Helper()
	text := "plugins:\n  instances:\n" + instances
	if err := os.WriteFile(e.config+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(e.config+".new", e.config); err != nil {
		t.Fatal(err)
	}
}

// sink is an instance of the file sink, for the config.
func (e *edited) sink(name, more string) string {
	return fmt.Sprintf("    - {name: %s, kind: sink, use: file, config: {path: %s%s}}\n", name, e.path(name), more)
}

func (e *edited) path(name string) string { return filepath.Join(e.dir, name+".ndjson") }

// capture sends events until ctx ends, one a request.
func (e *edited) capture(t *testing.T, ctx context.Context) {
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

// sofar is how many events have been accepted.
func (e *edited) sofar() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.acked)
}

// holds counts the events in the file of a sink.
func (e *edited) holds(t *testing.T, name string) map[string]int {
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

// pluginState is what an operator sees of an instance.
type pluginState struct {
	Name, State, Reason string
	LastError           string `json:"last_error"`
	Generation          uint64
	PID                 int
}

// plugins are what an operator sees, by name.
func (e *edited) plugins(t *testing.T) map[string]pluginState {
	t.Helper()
	var page struct{ Results []pluginState }
	if err := json.Unmarshal([]byte(e.manage(t, http.MethodGet, "/api/plugins/", "")), &page); err != nil {
		t.Fatal(err)
	}
	out := map[string]pluginState{}
	for _, p := range page.Results {
		out[p.Name] = p
	}
	return out
}

// more waits until more events have been accepted, and returns how many in all.
func (e *edited) more(t *testing.T, n int) int {
	t.Helper()
	from := e.sofar()
	e.until(t, "events flow", func() bool { return e.sofar() >= from+n })
	return e.sofar()
}

// Editing the file adds, changes and removes sinks while events flow: each gets
// everything from its first moment on, exactly once, whatever happens around it.
func TestAnEditedConfigIsAppliedWithoutARestart(t *testing.T) {
	t.Parallel()
	e := editing(t, "")
	e.edit(t, e.sink("a", ""))
	e.until(t, "a is ready", func() bool { return e.plugins(t)["a"].State == "ready" })
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { e.capture(t, ctx) })
	defer wg.Wait()
	defer stop()
	e.more(t, 20)

	e.edit(t, e.sink("a", "")+e.sink("b", ""))
	e.until(t, "b is added", func() bool { return e.plugins(t)["b"].State == "ready" })
	since := e.more(t, 20)

	e.edit(t, e.sink("a", ", rotate_bytes: 0")+e.sink("b", ""))
	e.until(t, "a is changed", func() bool { p := e.plugins(t)["a"]; return p.State == "ready" && p.Generation == 2 })
	e.more(t, 20)

	e.edit(t, e.sink("a", ", rotate_bytes: 0"))
	e.until(t, "b is removed", func() bool { _, there := e.plugins(t)["b"]; return !there })
	e.more(t, 20)

	// What cannot be used changes nothing, and is said.
	serving := e.plugins(t)["a"]
	for _, broken := range []string{"    - {name: a, kind: sink,\n", "    - {name: a, kind: sink, use: file, cofnig: {}}\n", e.sink("a", "") + e.sink("a", "")} {
		said := e.logs.FilterMessageSnippet("config reload failed").Len()
		e.edit(t, broken)
		e.until(t, "the broken file is noticed", func() bool { return e.logs.FilterMessageSnippet("config reload failed").Len() > said })
		if now := e.plugins(t); len(now) != 1 || now["a"] != serving {
			t.Errorf("with %q: %+v, was %+v", broken, now, serving)
		}
		req, err := http.NewRequest(http.MethodPost, e.URL+"/api/plugins/reload/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+e.PersonalKey)
		if status, answer := e.send(t, req); status != http.StatusBadRequest || !strings.Contains(answer, "invalid_config") {
			t.Errorf("reload: %d %s", status, answer)
		}
	}
	e.more(t, 20)

	// A binary that is not what was meant is the state of one instance.
	e.edit(t, e.sink("a", ", rotate_bytes: 0")+e.sink("b", "")+
		"    - {name: c, kind: sink, use: /bin/true, sha256: "+strings.Repeat("ab", 32)+"}\n")
	e.until(t, "b is back and c is not trusted", func() bool {
		now := e.plugins(t)
		return now["a"].State == "ready" && now["b"].State == "ready" && now["c"].State == "untrusted"
	})
	e.more(t, 20)
	stop()
	wg.Wait()

	e.until(t, "everything is in both files", func() bool {
		a, b := e.holds(t, "a"), e.holds(t, "b")
		for i, uuid := range e.acked {
			if a[uuid] == 0 || i >= since && b[uuid] == 0 {
				return false
			}
		}
		return true
	})
	for _, name := range []string{"a", "b"} {
		for uuid, n := range e.holds(t, name) {
			if n != 1 {
				t.Errorf("%s has %s %d times", name, uuid, n)
			}
		}
	}
}

// What stands for a secret is all that is ever shown of it.
func TestSecretsOfPluginsAreNeverShown(t *testing.T) {
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
	e := editing(t, hook("told", url)+hook("wrong", "nonsense://${file:"+key+"}/"))
	body := fmt.Sprintf(`{"api_key":%q,"event":"e","distinct_id":"d"}`, e.ProjectKey)
	var shown strings.Builder
	e.until(t, "both are in trouble", func() bool {
		res, err := http.Post(e.URL+"/capture/", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		now := e.plugins(t)
		return strings.Contains(e.manage(t, http.MethodGet, "/api/plugins/told/", ""), "401") && now["wrong"].State == "misconfigured"
	})
	for _, name := range []string{"told", "wrong"} {
		shown.WriteString(e.manage(t, http.MethodGet, "/api/plugins/"+name+"/", ""))
		shown.WriteString(e.manage(t, http.MethodGet, "/api/plugins/"+name+"/logs/", ""))
		shown.WriteString(e.manage(t, http.MethodPost, "/api/plugins/"+name+"/check/", "{}"))
	}
	shown.WriteString(e.manage(t, http.MethodGet, "/metrics", ""))
	for _, entry := range e.logs.All() {
		fmt.Fprintf(&shown, "%s %v\n", entry.Message, entry.ContextMap())
	}
	if text := shown.String(); strings.Contains(text, secret) {
		at := strings.Index(text, secret)
		t.Errorf("the secret is shown: %s", text[max(0, at-300):at+50])
	}
}

// listen serves h on a port of its own.
func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

package changes_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/changes"
	"github.com/guidonhq/guidon/core/changes/changelog"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// memoryLog is a changelog of project 1 in memory.
type memoryLog struct {
	mu    sync.Mutex
	list  []changelog.Change
	from  int64 // changes up to it are not kept
	reads int
}

func (l *memoryLog) add(kind changelog.Kind, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(len(l.list) + 1)
	l.list = append(l.list, changelog.Change{ProjectID: 1, Revision: n, At: time.Unix(1_771_622_898+n, 0), Kind: kind, ItemID: 10 + n, Name: name, Operation: changelog.Updated})
}

func (l *memoryLog) Heads(_ context.Context, ids []int64) (map[int64]changelog.Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if n := len(l.list); n > 0 && slices.Contains(ids, 1) {
		return map[int64]changelog.Head{1: {Revision: l.list[n-1].Revision, At: l.list[n-1].At}}, nil
	}
	return nil, nil
}

func (l *memoryLog) Since(_ context.Context, _, revision int64, limit int) ([]changelog.Change, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list[min(int(max(revision, l.from)), len(l.list)):]
	return slices.Clone(list[:min(limit, len(list))]), revision >= l.from, nil
}

// refreshed counts refreshes.
type refreshed struct {
	mu sync.Mutex
	n  int
}

func (r *refreshed) Refresh(context.Context, int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	return nil
}

func (r *refreshed) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

func fastConfig() changes.Config {
	cfg := changes.DefaultConfig()
	cfg.PollInterval, cfg.Heartbeat = 10*time.Millisecond, time.Second
	return cfg
}

func newHub(tb testing.TB, cfg changes.Config, l changes.Log, m changes.Memory) *changes.Hub {
	tb.Helper()
	hub, err := changes.NewHub(cfg, l, m, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := hub.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = hub.Stop(context.Background()) })
	return hub
}

func keys() webtest.Keys {
	k := webtest.DefaultKeys()
	k.Principals["phx_flags"] = &auth.Principal{KeyID: 2, Scopes: []string{"feature_flag:read"}, User: auth.User{ID: 1}}
	return k
}

const (
	publicURL  = "/flags/changes?token=phc_test"
	detailsURL = "/api/projects/1/changes"
)

// eventStream is an open stream of a test.
type eventStream struct {
	res *http.Response
	in  *bufio.Reader
}

func open(tb testing.TB, url string, header ...string) *eventStream {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	tb.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = res.Body.Close() })
	return &eventStream{res, bufio.NewReader(res.Body)}
}

// next returns the lines of the next event, without comments, joined by "|". It is
// empty at the end of the stream.
func (s *eventStream) next() string {
	var lines []string
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return ""
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" && lines != nil:
			return strings.Join(lines, "|")
		case line != "" && !strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "retry:"):
			lines = append(lines, line)
		}
	}
}

func refetch(revision int64) string {
	return fmt.Sprintf(`id: %d|event: message|data: {"type":"refetchEvaluation","etag":"%d","lastModified":%d,"revision":%d}`, revision, revision, 1_771_622_898+revision, revision)
}

func expect(t *testing.T, s *eventStream, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := s.next(); got != w {
			t.Fatalf("got  %s\nwant %s", got, w)
		}
	}
}

func TestPublicStream(t *testing.T) {
	t.Parallel()
	l, flags, actions := &memoryLog{}, &refreshed{}, &refreshed{}
	l.add(changelog.Flag, "nav")
	hub := newHub(t, fastConfig(), l, changes.Memory{Flags: flags, Actions: actions})
	base := webtest.Serve(t, keys(), changes.NewHTTP(hub))
	s := open(t, base+publicURL, "Origin", "https://app.example.com")
	if s.res.StatusCode != http.StatusOK || s.res.Header.Get("Content-Type") != "text/event-stream" || s.res.Header.Get("Access-Control-Allow-Origin") == "" {
		t.Fatalf("got %d %v", s.res.StatusCode, s.res.Header)
	}
	expect(t, s, `id: 1|event: ready|data: {"revision":1}`)
	before := flags.count()
	l.add(changelog.Action, "buy")
	l.add(changelog.Cohort, "friends")
	expect(t, s, refetch(3))
	if flags.count() == before || actions.count() == 0 {
		t.Error("the memory was not refreshed before the event")
	}
	for id, want := range map[string]string{"1": refetch(3), "0": refetch(3), "7": refetch(3), "abc": refetch(3)} {
		again := open(t, base+publicURL, "Last-Event-ID", id)
		start := id
		if id == "abc" {
			start = "0"
		}
		expect(t, again, `id: `+start+`|event: ready|data: {"revision":`+start+`}`, want)
	}
	query := open(t, base+publicURL+"&last_event_id=2")
	expect(t, query, `id: 2|event: ready|data: {"revision":2}`, refetch(3))
}

func TestDetails(t *testing.T) {
	t.Parallel()
	l := &memoryLog{}
	hub := newHub(t, fastConfig(), l, changes.Memory{})
	base := webtest.Serve(t, keys(), changes.NewHTTP(hub))
	all := open(t, base+detailsURL, "Authorization", "Bearer phx_test")
	flags := open(t, base+detailsURL, "Authorization", "Bearer phx_flags")
	expect(t, all, `id: 0|event: ready|data: {"revision":0}`)
	expect(t, flags, `id: 0|event: ready|data: {"revision":0}`)
	l.add(changelog.Action, "buy")
	l.add(changelog.Flag, `n"av`)
	action := `id: 1|event: change|data: {"revision":1,"at":"2026-02-20T21:28:19.000000Z","kind":"action","id":11,"name":"buy","operation":"updated"}`
	flag := `id: 2|event: change|data: {"revision":2,"at":"2026-02-20T21:28:20.000000Z","kind":"feature_flag","id":12,"name":"n\"av","operation":"updated"}`
	expect(t, all, action, flag)
	expect(t, flags, flag)
	expect(t, open(t, base+detailsURL, "Authorization", "Bearer phx_test", "Last-Event-ID", "1"), `id: 1|event: ready|data: {"revision":1}`, flag)
	l.mu.Lock()
	l.from = 1
	l.mu.Unlock()
	expect(t, open(t, base+detailsURL, "Authorization", "Bearer phx_test", "Last-Event-ID", "0"),
		`id: 0|event: ready|data: {"revision":0}`, `id: 2|event: reset|data: {"revision":2}`)
	for url, want := range map[string]string{
		detailsURL + "?since=1": `{"revision":2,"complete":true,"results":[{"revision":2,"at":"2026-02-20T21:28:20.000000Z","kind":"feature_flag","id":12,"name":"n\"av","operation":"updated"}]}`,
		detailsURL + "?since=2": `{"revision":2,"complete":true,"results":[]}`,
		publicURL:               `{"revision":2}`,
	} {
		if status, body := get(t, base+url, "Bearer phx_test"); status != 200 || body != want {
			t.Errorf("%s: got %d %s", url, status, body)
		}
	}
	if status, _ := get(t, base+detailsURL+"?since=x", "Bearer phx_test"); status != 400 {
		t.Errorf("got %d", status)
	}
	if status, _ := get(t, base+"/flags/changes?token=phc_other", ""); status != 401 {
		t.Errorf("unknown key: got %d", status)
	}
}

func get(t *testing.T, url, authorization string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set    func(*changes.Config)
		status int
	}{
		"of a client":  {func(c *changes.Config) { c.ClientStreams = 3 }, 429},
		"of a project": {func(c *changes.Config) { c.ProjectStreams = 3 }, 429},
		"in total":     {func(c *changes.Config) { c.MaxStreams = 3 }, 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := fastConfig()
			c.set(&cfg)
			hub := newHub(t, cfg, &memoryLog{}, changes.Memory{})
			base := webtest.Serve(t, keys(), changes.NewHTTP(hub))
			var first *eventStream
			for range 3 {
				first = open(t, base+publicURL)
				first.next()
			}
			s := open(t, base+publicURL)
			if s.res.StatusCode != c.status || s.res.Header.Get("Retry-After") == "" {
				t.Fatalf("got %d %v", s.res.StatusCode, s.res.Header)
			}
			_ = first.res.Body.Close()
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
				if s := open(t, base+publicURL); s.res.StatusCode == http.StatusOK {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("a closed stream still counts")
				}
			}
		})
	}
}

func TestStopEndsStreams(t *testing.T) {
	t.Parallel()
	hub := newHub(t, fastConfig(), &memoryLog{}, changes.Memory{})
	base := webtest.Serve(t, keys(), changes.NewHTTP(hub))
	s := open(t, base+publicURL)
	s.next()
	if err := hub.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.next(); got != "" {
		t.Errorf("got %s", got)
	}
	if s := open(t, base+publicURL); s.res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a stream after the stop: %d", s.res.StatusCode)
	}
}

// Streams are sent comments, so that proxies keep them open.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	hub := newHub(t, fastConfig(), &memoryLog{}, changes.Memory{})
	base := webtest.Serve(t, keys(), changes.NewHTTP(hub))
	s := open(t, base+publicURL)
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, ":") {
			return
		}
	}
}

// A client that was notified by another server gets the flags of that revision.
func TestAwait(t *testing.T) {
	t.Parallel()
	l, flags := &memoryLog{}, &refreshed{}
	l.add(changelog.Flag, "nav")
	hub := newHub(t, fastConfig(), l, changes.Memory{Flags: flags})
	for _, c := range []struct {
		name     string
		revision int64
		modified time.Time
		refresh  bool
	}{
		{"a revision that memory does not have", 1, time.Time{}, true},
		{"the same again", 1, time.Time{}, false},
		{"an earlier time", 0, time.Unix(1_771_622_800, 0), false},
		{"a revision that does not exist", 99, time.Time{}, false},
		{"a time that does not exist", 0, time.Unix(1_771_999_999, 0), false},
	} {
		before := flags.count()
		if err := hub.Await(t.Context(), 1, c.revision, c.modified); err != nil {
			t.Fatal(err)
		}
		if got := flags.count() > before; got != c.refresh {
			t.Errorf("%s: refreshed %v", c.name, got)
		}
	}
	l.add(changelog.Flag, "nav")
	before := flags.count()
	if err := hub.Await(t.Context(), 1, 0, time.Unix(1_771_622_900, 0)); err != nil || flags.count() == before {
		t.Errorf("a later time: %v, refreshed %d times", err, flags.count()-before)
	}
}

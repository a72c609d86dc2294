package projectdata

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/cmd/guidon/command"
)

// fakeServer has numbered events in pages of 10, and takes events in. The request with the
// number failAt fails.
type fakeServer struct {
	mu       sync.Mutex
	total    int
	requests int
	failAt   int            // number of the request that fails
	created  string         // of the project
	limited  bool           // the project is over its quota
	taken    map[string]int // how often an event was accepted, by uuid
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.requests == s.failAt {
		http.Error(w, `{"code":"broken","detail":"broken"}`, http.StatusBadRequest)
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/export/events/"):
		at, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		end := min(at+10, s.total)
		for i := at; i < end; i++ {
			fmt.Fprintf(w, `{"uuid":"%d","event":"e","distinct_id":"u","properties":{"n":%d}}`+"\n", i, i)
		}
		if end < s.total {
			w.Header().Set("Guidon-Next-Cursor", strconv.Itoa(end))
		}
	case r.URL.Path == "/api/projects/1/":
		fmt.Fprintf(w, `{"api_token":"phc_test","created_at":%q}`, s.created)
	case r.URL.Path == "/batch/":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			panic(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			panic(err)
		}
		var body struct{ Batch []struct{ UUID string } }
		if err := json.Unmarshal(text, &body); err != nil {
			panic(err)
		}
		if s.limited {
			_, _ = io.WriteString(w, `{"status":1,"quota_limited":["events"]}`)
			return
		}
		for _, e := range body.Batch {
			s.taken[e.UUID]++
		}
	}
}

func testEnv() *command.Env {
	return &command.Env{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard, ConfigFile: func() string { return "" }}
}

// An export and an import that fail at any request go on without a missing or a
// repeated event.
func TestInterruptedTransferGoesOn(t *testing.T) {
	t.Setenv("GUIDON_CONTEXTS", t.TempDir()+"/contexts.yaml")
	for failAt := 1; failAt <= 6; failAt++ {
		s := &fakeServer{total: 35, failAt: failAt, taken: map[string]int{}}
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var head headerLast
			s.ServeHTTP(&head, r)
			head.copyTo(w)
		}))
		dir := t.TempDir()
		at := command.Remote{Server: web.URL, Key: "phx_test", Project: 1, Output: "table"}
		export := Export{Remote: at, To: dir, Only: []string{"events"}}
		failed := 0
		for export.Run(testEnv()) != nil {
			if failed++; failed > 1 {
				t.Fatalf("request %d: the export fails again", failAt)
			}
		}
		bring := Import{Remote: at, From: dir, Only: []string{"events"}, ProjectKey: "phc_test"}
		for bring.Run(testEnv()) != nil {
			if failed++; failed > 1 {
				t.Fatalf("request %d: the import fails again", failAt)
			}
		}
		if err := bring.Run(testEnv()); err != nil { // everything is accepted already
			t.Fatal(err)
		}
		for i := range s.total {
			if n := s.taken[strconv.Itoa(i)]; n != 1 {
				t.Errorf("request %d fails: event %d was accepted %d times", failAt, i, n)
			}
		}
		if len(s.taken) != s.total {
			t.Errorf("request %d fails: %d events, want %d", failAt, len(s.taken), s.total)
		}
		web.Close()
	}
}

// headerLast keeps an answer until its header is complete.
type headerLast struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *headerLast) Header() http.Header {
	if h.header == nil {
		h.header = http.Header{}
	}
	return h.header
}
func (h *headerLast) Write(p []byte) (int, error) { return h.body.Write(p) }
func (h *headerLast) WriteHeader(status int)      { h.status = status }

func (h *headerLast) copyTo(w http.ResponseWriter) {
	for name, values := range h.header {
		w.Header()[name] = values
	}
	if h.status != 0 {
		w.WriteHeader(h.status)
	}
	_, _ = w.Write(h.body.Bytes())
}

// What an import has sent counts neither for a new project at the same address nor for
// another export in the same directory.
func TestImportBeginsAnewForAnotherTarget(t *testing.T) {
	t.Setenv("GUIDON_CONTEXTS", t.TempDir()+"/contexts.yaml")
	s := &fakeServer{total: 5, created: "2026-01-01T00:00:00Z", taken: map[string]int{}}
	web := httptest.NewServer(s)
	defer web.Close()
	dir := t.TempDir()
	at := command.Remote{Server: web.URL, Key: "phx_test", Project: 1, Output: "table"}
	export := Export{Remote: at, To: dir, Only: []string{"events"}}
	bring := Import{Remote: at, From: dir, Only: []string{"events"}}
	imports := func(want int) {
		t.Helper()
		if err := bring.Run(testEnv()); err != nil {
			t.Fatal(err)
		}
		if n := s.taken["0"]; n != want {
			t.Errorf("an event was accepted %d times, want %d", n, want)
		}
	}
	if err := export.Run(testEnv()); err != nil {
		t.Fatal(err)
	}
	imports(1)
	imports(1)
	s.created = "2026-02-02T00:00:00Z"
	imports(2)
	if err := os.Remove(filepath.Join(dir, manifestName)); err != nil {
		t.Fatal(err)
	}
	if err := export.Run(testEnv()); err != nil {
		t.Fatal(err)
	}
	imports(3)
}

// Events that the server drops over quota are not counted as sent: the import fails, and
// goes on when the quota permits.
func TestImportStopsOverQuota(t *testing.T) {
	t.Setenv("GUIDON_CONTEXTS", t.TempDir()+"/contexts.yaml")
	s := &fakeServer{total: 5, limited: true, taken: map[string]int{}}
	web := httptest.NewServer(s)
	defer web.Close()
	dir := t.TempDir()
	at := command.Remote{Server: web.URL, Key: "phx_test", Project: 1, Output: "table"}
	if err := (Export{Remote: at, To: dir, Only: []string{"events"}}).Run(testEnv()); err != nil {
		t.Fatal(err)
	}
	bring := Import{Remote: at, From: dir, Only: []string{"events"}}
	if err := bring.Run(testEnv()); err == nil || !strings.Contains(err.Error(), "over its quota") {
		t.Errorf("over quota: %v", err)
	}
	s.limited = false
	if err := bring.Run(testEnv()); err != nil || len(s.taken) != s.total {
		t.Errorf("%d events were accepted: %v", len(s.taken), err)
	}
}

func TestManifestWithoutProgress(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, manifestName), []byte(`{"format":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := readManifest(dir); err != nil || m.Progress == nil {
		t.Errorf("%+v: %v", m, err)
	}
}

// An $ip within a property is none of the event: the server would add the address of
// this machine.
func TestNestedIPIsNoAddress(t *testing.T) {
	list, err := eventsOf(kindEvents, []byte(`{"event":"e","properties":{"$set":{"$ip":"192.0.2.1"}}}`), &manifest{})
	if err != nil || len(list) != 1 || !bytes.Contains(list[0], []byte(`"properties":{"$ip":null,`)) {
		t.Errorf("%s: %v", list, err)
	}
}

func TestNullIP(t *testing.T) {
	for text, want := range map[string]string{"": `{"$ip":null}`, "{}": `{"$ip":null}`, "{ }": `{"$ip":null}`, `{"a":1}`: `{"$ip":null,"a":1}`} {
		if got := string(withNullIP([]byte(text))); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// endpoint is where a webhook notifier posts to: it takes what is signed.
type endpoint struct {
	*httptest.Server

	mu     sync.Mutex
	texts  []string
	ids    map[string]int
	wrong  []string
	answer func(w http.ResponseWriter, r *http.Request) bool // true: nothing more is to be done
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	verify, err := webhooks.NewWebhook(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{ids: map[string]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		answer := e.answer
		e.mu.Unlock()
		if answer != nil && answer(w, r) {
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		var message struct{ Data struct{ Text string } }
		if err := verify.Verify(body, r.Header); err != nil {
			e.wrong = append(e.wrong, err.Error())
		}
		if err := json.Unmarshal(body, &message); err != nil {
			e.wrong = append(e.wrong, err.Error())
		}
		e.texts = append(e.texts, message.Data.Text)
		e.ids[r.Header.Get("Webhook-Id")]++
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) told() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.texts)
}

// says waits until exactly that was told; one that had to be sent again may come
// after those behind it.
func (e *endpoint) says(t *testing.T, want ...string) {
	t.Helper()
	until(t, 30*time.Second, func() string {
		if got := slices.Sorted(slices.Values(e.told())); !slices.Equal(got, want) {
			return fmt.Sprintf("told %q, want %q", got, want)
		}
		return ""
	})
}

func (e *endpoint) set(answer func(w http.ResponseWriter, r *http.Request) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

func notifier(name, url string) string {
	return fmt.Sprintf("    - name: %s\n      kind: notifier\n      use: webhook\n      config: {url: %q, secret: %s, allow_networks: [127.0.0.0/8]}\n", name, url, hookSecret)
}

// manage asks a management path with a body.
func (s *server) manage(t *testing.T, method, path, body string) {
	t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.personal)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if said, _ := io.ReadAll(res.Body); res.StatusCode > 299 {
		t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, said)
	}
}

func (s *server) pay(t *testing.T, who string) {
	t.Helper()
	if code, err := s.post("/capture/", `{"api_key":"`+s.project+`","event":"paid","distinct_id":"`+who+`"}`); err != nil || code != http.StatusOK {
		t.Fatalf("capture: %d %v", code, err)
	}
}

// A real server, real notifier processes, real posts: each message arrives once,
// signed, whatever is killed meanwhile, and one endpoint that does not answer
// holds up no other.
func TestActionsTellChatThroughRealNotifiers(t *testing.T) {
	t.Parallel()
	room, other := newEndpoint(t), newEndpoint(t)
	s := newServer(t)
	write(t, s.config(), "notifications: {every: 0s}\nplugins:\n  instances:\n"+notifier("room", room.URL)+notifier("other", other.URL))
	s.start(t)
	s.manage(t, http.MethodPost, "/api/projects/1/actions/",
		`{"name":"Paid","steps":[{"event":"paid"}],"post_to_chat":true,"chat_message_format":"[person] paid"}`)
	s.pay(t, "ada")
	room.says(t, "ada paid")
	other.says(t, "ada paid")

	// One endpoint is slow, and its notifier is killed while it waits.
	stuck := make(chan struct{})
	var free sync.Once
	release := func() { free.Do(func() { close(stuck) }) }
	t.Cleanup(release)
	waiting := make(chan struct{}, 1)
	room.set(func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case waiting <- struct{}{}:
		default:
		}
		select {
		case <-stuck:
			return false
		case <-r.Context().Done():
			return true // whoever asked is gone
		}
	})
	s.pay(t, "bob")
	other.says(t, "ada paid", "bob paid")
	<-waiting
	s.killInstance(t, "room")
	s.pay(t, "cid")
	other.says(t, "ada paid", "bob paid", "cid paid")
	release()
	room.says(t, "ada paid", "bob paid", "cid paid")

	// The server is killed; what it had accepted is told by the next one.
	room.set(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	s.pay(t, "dan")
	s.kill()
	room.set(nil)
	s.start(t)
	room.says(t, "ada paid", "bob paid", "cid paid", "dan paid")
	other.mu.Lock()
	defer other.mu.Unlock()
	room.mu.Lock()
	defer room.mu.Unlock()
	for id, n := range room.ids {
		if n != 1 {
			t.Errorf("message %s arrived %d times", id, n)
		}
	}
	if len(room.wrong)+len(other.wrong) > 0 {
		t.Errorf("wrong: %q %q", room.wrong, other.wrong)
	}
}

// killInstance kills the process of a plugin instance.
func (s *server) killInstance(t *testing.T, name string) {
	t.Helper()
	until(t, 10*time.Second, func() string {
		var one struct{ PID int }
		s.get(t, "/api/plugins/"+name+"/", &one)
		if one.PID == 0 {
			return "not running"
		}
		if err := syscall.Kill(one.PID, syscall.SIGKILL); err != nil {
			return err.Error()
		}
		return ""
	})
}

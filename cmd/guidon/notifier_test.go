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

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// endpoint is a destination of webhook notifiers. It records messages and verifies
// their signatures.
type endpoint struct {
	*httptest.Server

	mu     sync.Mutex
	texts  []string
	ids    map[string]int
	wrong  []string
	answer func(w http.ResponseWriter, r *http.Request) bool // returns true if it has answered
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

func (e *endpoint) received() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.texts)
}

// waitReceived waits until the endpoint has received exactly these texts, given in
// sorted order: a message that was sent again may arrive after later ones.
func (e *endpoint) waitReceived(t *testing.T, want ...string) {
	t.Helper()
	until(t, func() string {
		if got := slices.Sorted(slices.Values(e.received())); !slices.Equal(got, want) {
			return fmt.Sprintf("received %q, want %q", got, want)
		}
		return ""
	})
}

func (e *endpoint) set(answer func(w http.ResponseWriter, r *http.Request) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

// notifier is the config of a webhook notifier with a process of its own: the end of
// one process must not repeat a message of the other.
func notifier(name, url string) string {
	return fmt.Sprintf("    - name: %s\n      kind: notifier\n      use: webhook\n      isolated: true\n      config: {url: %q, secret: %s, allow_networks: [127.0.0.0/8]}\n", name, url, hookSecret)
}

// managementRequest sends a request with a body to a management path.
func (s *server) managementRequest(t *testing.T, method, path, body string) {
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
	if output, _ := io.ReadAll(res.Body); res.StatusCode > 299 {
		t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, output)
	}
}

func (s *server) capturePaid(t *testing.T, distinctID string) {
	t.Helper()
	if code, err := s.post("/capture/", `{"api_key":"`+s.project+`","event":"paid","distinct_id":"`+distinctID+`"}`); err != nil || code != http.StatusOK {
		t.Fatalf("capture: %d %v", code, err)
	}
}

// The test runs a server with two notifier processes and kills a notifier and the
// server: each message arrives once and signed, and an endpoint that does not
// answer does not delay the other.
func TestActionsPostThroughNotifierProcesses(t *testing.T) {
	t.Parallel()
	hook, other := newEndpoint(t), newEndpoint(t)
	s := newServer(t)
	write(t, s.config(), "notifications: {every: 0s}\nplugins:\n  instances:\n"+notifier("hook", hook.URL)+notifier("other", other.URL))
	s.start(t)
	s.managementRequest(t, http.MethodPost, "/api/projects/1/actions/",
		`{"name":"Paid","steps":[{"event":"paid"}],"post_to_chat":true,"chat_message_format":"[person] paid"}`)
	s.capturePaid(t, "ada")
	hook.waitReceived(t, "ada paid")
	other.waitReceived(t, "ada paid")

	// One endpoint is slow, and its notifier is killed while it waits.
	stuck := make(chan struct{})
	var free sync.Once
	release := func() { free.Do(func() { close(stuck) }) }
	t.Cleanup(release)
	waiting, left := make(chan struct{}, 1), make(chan struct{}, 1)
	hook.set(func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case waiting <- struct{}{}:
		default:
		}
		select {
		case <-stuck:
			return false
		case <-r.Context().Done(): // the client has disconnected
			select {
			case left <- struct{}{}:
			default:
			}
			return true
		}
	})
	s.capturePaid(t, "bob")
	other.waitReceived(t, "ada paid", "bob paid")
	<-waiting
	s.killInstance(t, "hook")
	<-left // or the request of the killed process could be answered below
	s.capturePaid(t, "cid")
	other.waitReceived(t, "ada paid", "bob paid", "cid paid")
	release()
	hook.waitReceived(t, "ada paid", "bob paid", "cid paid")

	// The server is killed; the next one sends the notifications of accepted events.
	hook.set(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	s.capturePaid(t, "dan")
	s.kill()
	hook.set(nil)
	s.start(t)
	hook.waitReceived(t, "ada paid", "bob paid", "cid paid", "dan paid")
	other.mu.Lock()
	defer other.mu.Unlock()
	hook.mu.Lock()
	defer hook.mu.Unlock()
	for id, n := range hook.ids {
		if n != 1 {
			t.Errorf("message %s arrived %d times", id, n)
		}
	}
	if len(hook.wrong)+len(other.wrong) > 0 {
		t.Errorf("wrong: %q %q", hook.wrong, other.wrong)
	}
}

// killInstance kills the process of a plugin instance.
func (s *server) killInstance(t *testing.T, name string) {
	t.Helper()
	until(t, func() string {
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

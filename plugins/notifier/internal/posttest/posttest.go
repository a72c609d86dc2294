// Package posttest is what the tests of notifiers share: a service that keeps
// what it is sent and answers as it is told, a message, and the texts that must
// never do anything.
package posttest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// Service is a server on this machine.
type Service struct {
	*httptest.Server
	mu   sync.Mutex
	got  []*http.Request
	body [][]byte
}

// Listen starts a service; answer may be nil, for an empty 200.
func Listen(t *testing.T, answer http.HandlerFunc) *Service {
	t.Helper()
	s := &Service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.got, s.body = append(s.got, r), append(s.body, body)
		s.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// Count is how many requests there were.
func (s *Service) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got)
}

// Request is the i-th request and its body.
func (s *Service) Request(t *testing.T, i int) (*http.Request, []byte) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if i >= len(s.got) {
		t.Fatalf("there were %d requests", len(s.got))
	}
	return s.got[i], s.body[i]
}

// Decode reads the body of the i-th request into v.
func (s *Service) Decode(t *testing.T, i int, v any) {
	t.Helper()
	_, body := s.Request(t, i)
	if err := json.Unmarshal(body, v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}

// Local is the part of a config that lets a test reach this machine.
const Local = `"allow_networks": ["127.0.0.0/8"]`

// Message is a notification made of parts of every kind.
func Message(parts ...sdk.Segment) *sdk.Notification {
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	n := &sdk.Notification{
		ID: "n-1", Attempt: 1, Segments: parts,
		Project: sdk.ProjectRef{ID: 1, Name: "Shop"}, Action: sdk.ActionRef{ID: 12, Name: "signup", URL: "https://h.example/project/1/action/12"},
		Event:  sdk.Event{UUID: "018f0000-0000-7000-8000-000000000001", ProjectID: 1, Name: "signed up", DistinctID: "ada", Timestamp: at, ReceivedAt: at, Properties: []byte(`{"n":9007199254740993}`)},
		Person: sdk.PersonRef{Display: "ada@example.com"},
	}
	for _, p := range parts {
		n.Text += p.Value
	}
	return n
}

// Text is a part of a message that is nothing but text.
func Text(s string) sdk.Segment { return sdk.Segment{Kind: sdk.SegmentText, Value: s} }

// Link is a text that leads somewhere.
func Link(s, href string) sdk.Segment {
	return sdk.Segment{Kind: sdk.SegmentLink, Value: s, Href: href}
}

// Bold is a stressed text.
func Bold(s string) sdk.Segment { return sdk.Segment{Kind: sdk.SegmentBold, Value: s} }

// Code is a text in a fixed-width font.
func Code(s string) sdk.Segment { return sdk.Segment{Kind: sdk.SegmentCode, Value: s} }

// Hostile are texts as an event might hold them.
var Hostile = []string{
	"<!channel>", "<!here|x>", "<@U123>", "@everyone", "@here", "<@&1>", "**bold**", "[x](http://evil.example)", "`code`", "# head",
	"<script>alert(1)</script>", "a\r\nBcc: eve@evil.example", "\u202ereversed", "&lt;", "<https://evil.example|click>", "```\nblock\n```", "||spoiler||",
}

// Notifier is what a test opens.
type Notifier interface {
	sdk.Notifier
	sdk.Configured
	sdk.Validator
}

// Open decodes a config and opens the notifier.
func Open(t *testing.T, n Notifier, config string) {
	t.Helper()
	if err := sdk.DecodeConfig([]byte(config), n.Config()); err != nil {
		t.Fatal(err)
	}
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Open(t.Context(), sdk.OpenRequest{Instance: "test"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close(t.Context()) })
}

// Class is the class of an error, and its time to wait.
func Class(err error) (sdk.Class, time.Duration) {
	if err == nil {
		return sdk.ClassUnspecified, 0
	}
	e := sdk.AsError(err)
	return e.Class, e.RetryAfter
}

// Answers checks how a notifier takes what services answer. open makes one that
// posts to the URL.
func Answers(t *testing.T, open func(t *testing.T, url string) sdk.Notifier) {
	for name, tt := range map[string]struct {
		status int
		header [2]string
		class  sdk.Class
		after  time.Duration
	}{
		"bad":                 {400, [2]string{}, sdk.ClassPermanent, 0},
		"who are you?":        {401, [2]string{}, sdk.ClassTransient, 0},
		"no right":            {403, [2]string{}, sdk.ClassTransient, 0},
		"not here":            {404, [2]string{}, sdk.ClassTransient, 0},
		"no more":             {410, [2]string{}, sdk.ClassTransient, 0},
		"elsewhere":           {302, [2]string{"Location", "http://169.254.169.254/latest"}, sdk.ClassTransient, 0},
		"too fast":            {429, [2]string{"Retry-After", "7"}, sdk.ClassThrottled, 7 * time.Second},
		"broken":              {500, [2]string{}, sdk.ClassTransient, 0},
		"gateway":             {502, [2]string{}, sdk.ClassTransient, 0},
		"closed for the hour": {503, [2]string{"Retry-After", "3600"}, sdk.ClassThrottled, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Listen(t, func(w http.ResponseWriter, _ *http.Request) {
				if tt.header[0] != "" {
					w.Header().Set(tt.header[0], tt.header[1])
				}
				w.WriteHeader(tt.status)
			})
			_, err := open(t, s.URL).Notify(t.Context(), Message(Text("hello")))
			if class, after := Class(err); class != tt.class || after != tt.after || s.Count() != 1 {
				t.Errorf("%v after %s, %d requests: %v", class, after, s.Count(), err)
			}
		})
	}
	t.Run("hangs up", func(t *testing.T) {
		t.Parallel()
		s := Listen(t, func(w http.ResponseWriter, _ *http.Request) {
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 200 O")
				_ = c.Close()
			}
		})
		_, err := open(t, s.URL+"/secret-path").Notify(t.Context(), Message(Text("hello")))
		if class, _ := Class(err); class != sdk.ClassTransient {
			t.Errorf("%v", err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		_, err := open(t, "http://127.0.0.1:1").Notify(t.Context(), Message(Text("hello")))
		if class, _ := Class(err); class != sdk.ClassTransient {
			t.Errorf("%v", err)
		}
	})
	t.Run("hangs", func(t *testing.T) {
		t.Parallel()
		release := make(chan struct{})
		s := Listen(t, func(http.ResponseWriter, *http.Request) { <-release })
		t.Cleanup(func() { close(release) }) // before the server is closed
		_, err := open(t, s.URL).Notify(t.Context(), Message(Text("hello")))
		if class, _ := Class(err); class != sdk.ClassTransient {
			t.Errorf("%v", err)
		}
	})
}

package discord_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/plugins/notifier/discord"
	. "github.com/guidonhq/guidon/plugins/notifier/internal/posttest"
	"github.com/guidonhq/guidon/sdk"
)

func opened(t *testing.T, url string) sdk.Notifier {
	t.Helper()
	n := discord.New()
	Open(t, n, `{"url": "`+url+`", "timeout": "300ms", `+Local+`}`)
	return n
}

// sent is a message as Discord documents it.
type sent struct {
	Content string
	Allowed *struct{ Parse []string } `json:"allowed_mentions"`
	Flags   int
}

func TestMessageTriggersNoMentions(t *testing.T) {
	t.Parallel()
	s := Listen(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset-After", "1.5")
		w.Header().Set("X-RateLimit-Bucket", "b1")
		_, _ = io.WriteString(w, `{"id":"123"}`)
	})
	m := Message(Link("sign_up", "https://h.example/a_(b)?c=1"), Text(" was triggered by "), Bold("ada@example.com"), Code("a`b"))
	m.Suppressed = 3
	for i, path := range []string{"/api/webhooks/1/x", "/api/webhooks/1/x/slack"} {
		r, err := opened(t, s.URL+path).Notify(t.Context(), m)
		if err != nil || r.Outcome != sdk.Delivered || r.MessageID != "123" {
			t.Fatalf("%+v, %v", r, err)
		}
		if r.Rate == nil || r.Rate.Remaining != 0 || r.Rate.ResetAfter != 1500*time.Millisecond || r.Rate.Scope != "b1" {
			t.Errorf("rate %+v", r.Rate)
		}
		req, _ := s.Request(t, i)
		if req.URL.String() != "/api/webhooks/1/x?wait=true" {
			t.Errorf("posted to %s", req.URL)
		}
		var got sent
		s.Decode(t, i, &got)
		want := `[sign\_up](<https://h.example/a_(b%29?c=1>) was triggered by **ada@example.com**` + "`a'b`" + ` \(and 3 more\)`
		if got.Content != want || got.Allowed == nil || got.Allowed.Parse == nil || len(got.Allowed.Parse) != 0 || got.Flags != 4 {
			t.Errorf("%+v\nwant %s", got, want)
		}
	}
}

// Whatever begins markup is behind a backslash, and nothing else is changed.
func TestNothingInAnEventIsMarkup(t *testing.T) {
	t.Parallel()
	s := Listen(t, nil)
	n := opened(t, s.URL)
	for i, text := range Hostile {
		if _, err := n.Notify(t.Context(), Message(Text(text))); err != nil {
			t.Fatal(err)
		}
		var got sent
		s.Decode(t, i, &got)
		if strings.ReplaceAll(got.Content, `\`, "") != text {
			t.Errorf("%q became %q", text, got.Content)
		}
		for at, r := range got.Content {
			if strings.ContainsRune("*_~`|<>[]#", r) && (at == 0 || got.Content[at-1] != '\\') {
				t.Errorf("%q of %q is not escaped: %q", r, text, got.Content)
			}
		}
		if strings.HasPrefix(text, "@") && !strings.HasPrefix(got.Content, `\@`) {
			t.Errorf("%q", got.Content)
		}
	}
}

func TestALongMessageIsCutBelowTheLimit(t *testing.T) {
	t.Parallel()
	s := Listen(t, nil)
	n := opened(t, s.URL)
	for i, text := range []string{strings.Repeat("ä", 5000), strings.Repeat("*", 5000)} {
		if _, err := n.Notify(t.Context(), Message(Text(text))); err != nil {
			t.Fatal(err)
		}
		var got sent
		s.Decode(t, i, &got)
		if n := len([]rune(got.Content)); n > 2000 || n < 800 {
			t.Errorf("%d characters", n)
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	Answers(t, opened)
	s := Listen(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Reset-After", "0.35")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"message": "You are being rate limited.", "retry_after": 0.35, "global": false}`)
	})
	_, err := opened(t, s.URL).Notify(t.Context(), Message(Text("hello")))
	if class, after := Class(err); class != sdk.ClassThrottled || after != 350*time.Millisecond {
		t.Errorf("%v after %s", class, after)
	}
}

func TestAnActionCannotHaveAnythingPostedTo(t *testing.T) {
	t.Parallel()
	n := opened(t, "https://discord.com/api/webhooks/1/x")
	for _, to := range []string{"https://discord.com.evil.example/x", "http://discord.com/x", "https://evil.example", "x"} {
		m := Message(Text("hello"))
		m.Destination = to
		if class, _ := Class(func() error { _, err := n.Notify(t.Context(), m); return err }()); class != sdk.ClassPermanent {
			t.Errorf("%s: %v", to, class)
		}
	}
}

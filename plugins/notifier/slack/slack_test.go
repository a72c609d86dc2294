package slack_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/guidonhq/guidon/plugins/notifier/internal/posttest"
	"github.com/guidonhq/guidon/plugins/notifier/slack"
	"github.com/guidonhq/guidon/sdk"
)

func byWebhook(t *testing.T, url string) sdk.Notifier {
	t.Helper()
	n := slack.New()
	Open(t, n, `{"url": "`+url+`", "timeout": "300ms", `+Local+`}`)
	return n
}

func asBot(t *testing.T, url string) sdk.Notifier {
	t.Helper()
	n := slack.New()
	Open(t, n, `{"token": "xoxb-1", "channel": "#sales", "api": "`+url+`/api", "timeout": "300ms", `+Local+`}`)
	return n
}

// sent is a message as Slack documents it.
type sent struct {
	Channel, Text, Parse string
	LinkNames            bool `json:"link_names"`
	Blocks               []struct {
		Type     string
		Elements []struct {
			Type     string
			Elements []struct {
				Type, Text, URL string
				Style           map[string]bool
			}
		}
	}
}

func TestAMessageIsRichText(t *testing.T) {
	t.Parallel()
	s := Listen(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	m := Message(Link("signup", "https://h.example/a?b=1&c=2"), Text(" was triggered by "), Bold("ada"), Code("x"), Text(""))
	m.Suppressed = 214
	r, err := byWebhook(t, s.URL).Notify(t.Context(), m)
	if err != nil || r.Outcome != sdk.Delivered {
		t.Fatalf("%+v, %v", r, err)
	}
	var got sent
	s.Decode(t, 0, &got)
	if got.Text != "signup was triggered by adax (and 214 more)" || got.Parse != "none" || got.LinkNames || got.Channel != "" {
		t.Errorf("%+v", got)
	}
	if len(got.Blocks) != 1 || got.Blocks[0].Type != "rich_text" || got.Blocks[0].Elements[0].Type != "rich_text_section" {
		t.Fatalf("%+v", got.Blocks)
	}
	said := fmt.Sprintf("%+v", got.Blocks[0].Elements[0].Elements)
	want := "[{Type:link Text:signup URL:https://h.example/a?b=1&c=2 Style:map[]} {Type:text Text: was triggered by  URL: Style:map[]} " +
		"{Type:text Text:ada URL: Style:map[bold:true]} {Type:text Text:x URL: Style:map[code:true]} {Type:text Text: (and 214 more) URL: Style:map[]}]"
	if said != want {
		t.Errorf("got  %s\nwant %s", said, want)
	}
}

func TestNothingInAnEventIsMarkup(t *testing.T) {
	t.Parallel()
	s := Listen(t, nil)
	n := byWebhook(t, s.URL)
	for i, text := range Hostile {
		if _, err := n.Notify(t.Context(), Message(Text(text))); err != nil {
			t.Fatal(err)
		}
		var got sent
		s.Decode(t, i, &got)
		if strings.ContainsAny(got.Text, "<>") {
			t.Errorf("the plain text of %q is %q", text, got.Text)
		}
		e := got.Blocks[0].Elements[0].Elements
		if len(e) != 1 || e[0].Type != "text" || e[0].Text != text {
			t.Errorf("the block of %q is %+v", text, e)
		}
	}
}

func TestALongMessageIsCut(t *testing.T) {
	t.Parallel()
	s := Listen(t, nil)
	if _, err := byWebhook(t, s.URL).Notify(t.Context(), Message(Text(strings.Repeat("ä", 5000)), Text("never seen"))); err != nil {
		t.Fatal(err)
	}
	var got sent
	s.Decode(t, 0, &got)
	if text := []rune(got.Text); len(text) != 3000 || text[2999] != '…' {
		t.Errorf("%d characters", len(text))
	}
}

func TestAnswersOfAWebhook(t *testing.T) {
	t.Parallel()
	Answers(t, byWebhook)
}

func TestAnswersOfTheAPI(t *testing.T) {
	t.Parallel()
	Answers(t, asBot)
	for code, class := range map[string]sdk.Class{
		"channel_not_found": sdk.ClassConfig, "invalid_auth": sdk.ClassConfig, "ratelimited": sdk.ClassThrottled,
		"internal_error": sdk.ClassTransient, "msg_too_long": sdk.ClassPermanent, "": sdk.ClassTransient,
	} {
		s := Listen(t, func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"ok": false, "error": code})
		})
		_, err := asBot(t, s.URL).Notify(t.Context(), Message(Text("hello")))
		if got, _ := Class(err); got != class {
			t.Errorf("%q is %v", code, err)
		}
	}
}

func TestABotPostsToItsChannelOrAnother(t *testing.T) {
	t.Parallel()
	s := Listen(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"ok":true,"ts":"1503435956.000247"}`)
	})
	n := asBot(t, s.URL)
	for i, want := range []string{"#sales", "C0123"} {
		m := Message(Text("hello"))
		if i == 1 {
			m.Destination = want
		}
		r, err := n.Notify(t.Context(), m)
		if err != nil || r.MessageID != "1503435956.000247" {
			t.Fatalf("%+v, %v", r, err)
		}
		var got sent
		s.Decode(t, i, &got)
		req, _ := s.Request(t, i)
		if got.Channel != want || req.URL.Path != "/api/chat.postMessage" || req.Header.Get("Authorization") != "Bearer xoxb-1" {
			t.Errorf("%+v %s %v", got, req.URL, req.Header)
		}
	}
	if err := n.(sdk.Checker).Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnActionCannotHaveAnythingPostedTo(t *testing.T) {
	t.Parallel()
	s := Listen(t, nil)
	n := byWebhook(t, "http://hooks.slack.com.evil.example/x")
	for _, to := range []string{s.URL, "https://evil.example/hooks.slack.com", "http://hooks.slack.com/x", "file:///etc/passwd", "x"} {
		m := Message(Text("hello"))
		m.Destination = to
		if _, err := n.Notify(t.Context(), m); err == nil {
			t.Errorf("%s was posted to", to)
		} else if class, _ := Class(err); class != sdk.ClassPermanent {
			t.Errorf("%s: %v", to, err)
		}
	}
	if s.Count() != 0 {
		t.Error("something arrived")
	}
}

func TestAPrivateAddressIsReachedOnlyWhenAllowed(t *testing.T) {
	t.Parallel()
	s := Listen(t, nil)
	n := slack.New()
	Open(t, n, `{"url": "`+s.URL+`"}`)
	_, err := n.Notify(t.Context(), Message(Text("hello")))
	if class, _ := Class(err); class != sdk.ClassConfig || sdk.AsError(err).Code != "address_refused" || s.Count() != 0 {
		t.Errorf("%v, %d requests", err, s.Count())
	}
}

func TestPreviewIsWhatWouldBeSent(t *testing.T) {
	t.Parallel()
	p, err := asBot(t, "https://slack.example").(sdk.Previewer).Preview(t.Context(), Message(Text("hello")))
	var got sent
	if err != nil || json.Unmarshal(p.Rendered, &got) != nil || got.Channel != "#sales" || got.Text != "hello" {
		t.Errorf("%s, %v", p.Rendered, err)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	t.Parallel()
	for config, pointer := range map[string]string{
		`{}`: "/url", `{"url": "https://x", "token": "y"}`: "/url", `{"token": "y"}`: "/channel", `{"url": "ftp://x"}`: "/url",
		`{"token": "y", "channel": "c", "api": "x"}`: "/api",
	} {
		n := slack.New()
		if err := sdk.DecodeConfig([]byte(config), n.Config()); err != nil {
			t.Fatal(err)
		}
		if err := n.Validate(); err == nil || sdk.AsError(err).Pointer != pointer {
			t.Errorf("%s: %v", config, err)
		}
	}
}

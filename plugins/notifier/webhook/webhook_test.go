package webhook_test

import (
	"net/http"
	"strings"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	. "github.com/guidonhq/guidon/plugins/notifier/internal/posttest"
	"github.com/guidonhq/guidon/plugins/notifier/webhook"
	"github.com/guidonhq/guidon/sdk"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func opened(t *testing.T, url string) sdk.Notifier {
	t.Helper()
	n := webhook.New()
	Open(t, n, `{"url": "`+url+`", "secret": "`+secret+`", "headers": {"authorization": "Bearer x"}, "timeout": "300ms", `+Local+`}`)
	return n
}

func TestAMessageIsSignedAndTheSameEachTime(t *testing.T) {
	t.Parallel()
	s := Listen(t, nil)
	n := opened(t, s.URL)
	m := Message(Text("signup was triggered by ada"))
	m.Suppressed = 2
	for range 2 {
		if r, err := n.Notify(t.Context(), m); err != nil || r.Outcome != sdk.Delivered {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	req, body := s.Request(t, 0)
	if _, again := s.Request(t, 1); string(body) != string(again) {
		t.Error("the second body is another")
	}
	signer, err := webhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := signer.Verify(body, req.Header); err != nil {
		t.Errorf("the signature: %v", err)
	}
	if req.Header.Get("Webhook-Id") != "n-1" || req.Header.Get("Idempotency-Key") != "n-1" || req.Header.Get("Authorization") != "Bearer x" {
		t.Errorf("%v", req.Header)
	}
	var got struct {
		Type, Timestamp string
		Data            struct {
			Text       string
			Suppressed int
			Event      sdk.Event
			Action     struct{ ID int }
			Person     struct{ Display string }
		}
	}
	s.Decode(t, 0, &got)
	if got.Type != "action_performed" || got.Data.Text != m.Text || got.Data.Suppressed != 2 || got.Data.Event.DistinctID != "ada" ||
		got.Data.Action.ID != 12 || got.Data.Person.Display != "ada@example.com" || !strings.Contains(string(body), "9007199254740993") {
		t.Errorf("%s", body)
	}
}

func TestAnAddressOfAnActionGetsNoHeadersAndNoSignatureOfTheOperator(t *testing.T) {
	t.Parallel()
	s := Listen(t, nil)
	m := Message(Text("hello"))
	m.Destination = s.URL + "/elsewhere"
	if _, err := opened(t, "https://x.example").Notify(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	req, _ := s.Request(t, 0)
	if req.URL.Path != "/elsewhere" || req.Header.Get("Authorization") != "" || req.Header.Get("Webhook-Signature") != "" {
		t.Errorf("%s %v", req.URL, req.Header)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	Answers(t, opened)
}

func TestValidateNamesTheField(t *testing.T) {
	t.Parallel()
	for config, pointer := range map[string]string{
		`{"url": "x"}`: "/url", `{"url": "http://x", "secret": "whsec_***"}`: "/secret", `{"url": "http://x", "headers": {"host": "y"}}`: "/headers",
	} {
		n := webhook.New()
		if err := sdk.DecodeConfig([]byte(config), n.Config()); err != nil {
			t.Fatal(err)
		}
		if err := n.Validate(); err == nil || sdk.AsError(err).Pointer != pointer {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// The host of the configured URL is allowed by name; an action names other ports
// and paths of it.
func TestAnActionReachesAllowedHostsAtTheirPortOnly(t *testing.T) {
	t.Parallel()
	s := Listen(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "internal secret", http.StatusTeapot) })
	host := strings.TrimPrefix(s.URL, "http://")
	for allowed, reached := range map[string]bool{"127.0.0.1": false, host: true, host + "/hooks": true, host + "/other": false, "127.0.0.1:1": false} {
		n := webhook.New()
		Open(t, n, `{"url": "`+s.URL+`", "secret": "`+secret+`", "timeout": "5s", "allow_hosts": ["`+allowed+`"]}`)
		before := s.Count()
		m := Message(Text("hello"))
		m.Destination = s.URL + "/hooks/a"
		_, err := n.Notify(t.Context(), m)
		if (s.Count() > before) != reached || err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("allow_hosts %s: %d requests, %v", allowed, s.Count()-before, err)
		}
		if _, err := n.Notify(t.Context(), Message(Text("hello"))); err == nil || !strings.Contains(err.Error(), "internal secret") {
			t.Errorf("the operator's own address: %v", err)
		}
	}
	n := webhook.New()
	Open(t, n, `{"url": "`+s.URL+`", "timeout": "5s"}`)
	m := Message(Text("hello"))
	m.Destination = "http://localhost:1/x"
	if _, err := n.Notify(t.Context(), m); err == nil || strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "::1") {
		t.Errorf("a refused address: %v", err)
	}
}

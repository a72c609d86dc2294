package msteams_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/guidonhq/guidon/plugins/notifier/internal/posttest"
	"github.com/guidonhq/guidon/plugins/notifier/msteams"
	"github.com/guidonhq/guidon/sdk"
)

func opened(t *testing.T, url string) sdk.Notifier { return with(t, url, "auto") }

func with(t *testing.T, url, format string) sdk.Notifier {
	t.Helper()
	n := msteams.New()
	Open(t, n, `{"url": "`+url+`", "format": "`+format+`", "timeout": "300ms", `+Local+`}`)
	return n
}

// sent is a message as a workflow takes it.
type sent struct {
	Type        string
	Attachments []struct {
		ContentType string
		Content     struct {
			Type, Version string
			Body          []struct {
				Type    string
				Inlines []struct {
					Type, Text, Weight string
					SelectAction       *struct{ Type, URL string }
				}
			}
		}
	}
}

func TestAMessageIsACard(t *testing.T) {
	t.Parallel()
	s := Listen(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	r, err := opened(t, s.URL).Notify(t.Context(), Message(Link("signup", "https://h.example/1"), Text(" by "), Bold("ada")))
	if err != nil || r.Outcome != sdk.Delivered {
		t.Fatalf("%+v, %v", r, err)
	}
	var got sent
	s.Decode(t, 0, &got)
	if got.Type != "message" || len(got.Attachments) != 1 || got.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" {
		t.Fatalf("%+v", got)
	}
	card := got.Attachments[0].Content
	if card.Type != "AdaptiveCard" || card.Version != "1.4" || len(card.Body) != 1 || card.Body[0].Type != "RichTextBlock" {
		t.Fatalf("%+v", card)
	}
	runs := card.Body[0].Inlines
	if len(runs) != 3 || runs[0].SelectAction == nil || runs[0].SelectAction.URL != "https://h.example/1" || runs[0].SelectAction.Type != "Action.OpenUrl" ||
		runs[1].Text != " by " || runs[2].Weight != "Bolder" {
		t.Errorf("%+v", runs)
	}
}

func TestNothingInAnEventIsMarkup(t *testing.T) {
	t.Parallel()
	s := Listen(t, nil)
	card, old := opened(t, s.URL), with(t, s.URL, "text")
	for i, text := range Hostile {
		for _, n := range []sdk.Notifier{card, old} {
			if _, err := n.Notify(t.Context(), Message(Text(text))); err != nil {
				t.Fatal(err)
			}
		}
		var got sent
		s.Decode(t, 2*i, &got)
		if run := got.Attachments[0].Content.Body[0].Inlines[0]; run.Text != text || run.Type != "TextRun" {
			t.Errorf("the card of %q says %+v", text, run)
		}
		var plain struct{ Text string }
		s.Decode(t, 2*i+1, &plain)
		if strings.ContainsAny(plain.Text, "<>") {
			t.Errorf("the text of %q is %q", text, plain.Text)
		}
		for at, r := range plain.Text {
			if strings.ContainsRune("*_`[]#|", r) && (at == 0 || plain.Text[at-1] != '\\') {
				t.Errorf("%q of %q is not escaped: %q", r, text, plain.Text)
			}
		}
	}
}

func TestAnOldConnectorGetsText(t *testing.T) {
	t.Parallel()
	n := with(t, "https://acme.webhook.office.com/webhookb2/x", "auto")
	p, err := n.(sdk.Previewer).Preview(t.Context(), Message(Link("sign up", "https://h.example/a(b)"), Bold("!")))
	if err != nil || string(p.Rendered) != `{"text":"[sign up](https://h.example/a%28b%29)**\\!**"}` {
		t.Errorf("%s, %v", p.Rendered, err)
	}
}

// A connector answers 200 also when it failed.
func TestAFailureBehindA200IsOne(t *testing.T) {
	t.Parallel()
	for said, class := range map[string]sdk.Class{
		"1": sdk.ClassUnspecified,
		"Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429": sdk.ClassThrottled,
		"Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 500": sdk.ClassTransient,
	} {
		s := Listen(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, said) })
		_, err := with(t, s.URL, "text").Notify(t.Context(), Message(Text("hello")))
		if got, _ := Class(err); got != class {
			t.Errorf("%q: %v", said, err)
		}
	}
}

func TestACardStaysBelowTheLimit(t *testing.T) {
	t.Parallel()
	p, err := opened(t, "https://x.example").(sdk.Previewer).Preview(t.Context(), Message(Text(strings.Repeat("<ä>", 20000))))
	if err != nil || len(p.Rendered) > 28<<10 || !json.Valid(p.Rendered) {
		t.Errorf("%d bytes, %v", len(p.Rendered), err)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	Answers(t, opened)
}

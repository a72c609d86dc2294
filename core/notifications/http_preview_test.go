package notifications_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/core/web/webtest"
	"github.com/guidonhq/guidon/sdk"
)

// shown is a notifier with a preview.
type shown struct {
	*chat
	err error
}

func (s shown) Plugin() string { return "slack" }

func (s shown) Preview(_ context.Context, n *sdk.Notification) (sdk.Preview, error) {
	return sdk.Preview{Rendered: []byte(n.Destination + ": " + n.Text), MediaType: "text/plain", Warnings: []string{"cut"}}, s.err
}

func TestMessagePreviewAsTheNotifierSendsIt(t *testing.T) {
	t.Parallel()
	p := open(t, dbtest.SQLite(t), func(_ *notifications.Config, w *world) {
		w.chats = []*chat{{name: "plain"}}
		w.more = []notifications.Notifier{shown{chat: &chat{name: "team"}}, shown{&chat{name: "broken"}, errors.New("broken")}}
	})
	base := webtest.Serve(t, webtest.DefaultKeys(), notifications.NewHTTP(p.Service))
	for body, want := range map[string]string{
		`{"name": "Paid", "chat_message_format": "[action.name]!"}`:                                     `"rendered":null}`,
		`{"name": "Paid", "chat_message_format": "[action.name]!", "notifier": "team", "to": "#sales"}`: `"rendered":{"plugin":"slack","media_type":"text/plain","body":"#sales: Paid!","warnings":["cut"]}}`,
		`{"name": "Paid", "chat_message_format": "x", "notifier": "plain"}`:                             `"error":"The notifier has no preview."}}`,
		`{"name": "Paid", "chat_message_format": "x", "notifier": "broken"}`:                            `"body":"","warnings":[],"error":"broken"}}`,
		`{"name": "Paid", "chat_message_format": "x", "notifier": "gone"}`:                              `"error":"There is no notifier of this name in the config of the server."}}`,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/projects/1/actions/preview_message/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer phx_test")
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || !strings.HasSuffix(string(got), want) {
			t.Errorf("%s: %d %s, %v; want …%s", body, res.StatusCode, got, err, want)
		}
	}
}

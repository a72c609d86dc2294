package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"

	"github.com/guidonhq/guidon/sdk"
)

// board is a whole notifier: it posts to a bulletin board over HTTP.
type board struct {
	cfg struct {
		URL string `json:"url" required:"true" secret:"true" doc:"Where to post."`
	}
	client *http.Client
}

func newBoard() sdk.Notifier { return &board{} }

func (b *board) Config() any { return &b.cfg }

func (b *board) Open(context.Context, sdk.OpenRequest) (sdk.NotifierProperties, error) {
	b.client = sdk.HTTPClient(sdk.HTTPOptions{}) // refuses addresses that are not public
	return sdk.NotifierProperties{MaxInFlight: 4, PerSecond: 1, Burst: 5}, nil
}

func (b *board) Notify(ctx context.Context, n *sdk.Notification) (sdk.NotifyResult, error) {
	text := n.Render(func(s sdk.Segment) string { // the board has its own markup: nothing of the event may use it
		value := strings.NewReplacer("[", "[[", "]", "]]").Replace(s.Value)
		if s.Kind == sdk.SegmentBold {
			return "[b]" + value + "[/b]"
		}
		return value
	})
	body, _ := json.Marshal(map[string]string{"text": text, "key": n.ID}) // strings can always be encoded
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return sdk.NotifyResult{}, sdk.ConfigError("/url", err)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return sdk.NotifyResult{}, err // tried again, unless the address was refused
	}
	defer func() { _ = resp.Body.Close() }()
	return n.Delivered(resp.Header.Get("X-Post-Id")), sdk.FromHTTP(resp) // an error wins over the result
}

func (b *board) Close(context.Context) error { return nil }

// A notifier in about thirty lines.
func Example_notifier() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		sdk.Serve(sdk.Plugin{Name: "acme/board", Version: "1.0.0", Notifier: newBoard})
	}
}

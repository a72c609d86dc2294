//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// chatRoom receives what a webhook notifier posts. It answers 500 while it is broken;
// POST /break and /repair switch it, GET /posts lists what it took.
type chatRoom struct {
	mu     sync.Mutex
	broken bool
	posts  []json.RawMessage
}

func (c *chatRoom) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.URL.Path == "/break" || r.URL.Path == "/repair":
		c.broken = r.URL.Path == "/break"
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(c.posts)
	case c.broken:
		http.Error(w, "the room is closed", http.StatusInternalServerError)
	default:
		if body, err := io.ReadAll(r.Body); err == nil {
			c.posts = append(c.posts, body)
		}
	}
}

// TestConsoleActions makes, changes, merges, deletes and restores actions in the console,
// with the preview of real events, and posts to a chat whose messages fail and are sent
// again. All names, events and properties of one action are hostile texts.
func TestConsoleActions(t *testing.T) { onDatabases(t, testConsoleActions) }

func testConsoleActions(t *testing.T, database []string) {
	room := httptest.NewServer(&chatRoom{})
	t.Cleanup(room.Close)
	hook := fmt.Sprintf("url: %q\nallow_hosts: [127.0.0.1]", room.URL)
	s := startWith(t, instanceYAML("team", "notifier", "webhook", hook)+instanceYAML("ops", "notifier", "webhook", hook),
		append(database, "GUIDON_NOTIFICATIONS_EVERY=0s", "GUIDON_NOTIFICATIONS_MAX_ATTEMPTS=1", "GUIDON_NOTIFICATIONS_RETRY_MIN=100ms")...)
	capture := func(event, who string, properties map[string]any) {
		t.Helper()
		body, err := json.Marshal(map[string]any{"api_key": s.project, "event": event, "distinct_id": who, "properties": properties})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.status(http.MethodPost, "/capture/", strings.NewReader(string(body)), http.StatusOK); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		who := fmt.Sprintf("person-%d", i)
		capture("$pageview", who, map[string]any{"$current_url": "https://shop.example/checkout/" + who})
		capture("paid", who, map[string]any{"$current_url": "https://shop.example/checkout", "amount": 10 * i, "plan": []string{"free", "pro"}[i%2]})
	}
	capture(hostile, hostile, map[string]any{"$current_url": hostile, hostile: hostile, "$set": map[string]any{"email": hostile}})
	eventually(t, time.Minute, "all events are stored", func() error {
		var page struct{ Results []any }
		s.do(t, http.MethodGet, "/api/projects/1/events/?limit=100", nil, &page, http.StatusOK)
		if len(page.Results) != 13 {
			return fmt.Errorf("%d of 13", len(page.Results))
		}
		return nil
	})
	create := func(fields map[string]any) {
		t.Helper()
		s.do(t, http.MethodPost, "/api/projects/1/actions/", fields, nil, http.StatusCreated)
	}
	create(map[string]any{"name": "Looked at the checkout", "description": "Any page of it", "tags": []string{"shop"}, "steps": []any{
		map[string]any{"event": "$pageview", "url": "/checkout", "url_matching": "contains"}}})
	create(map[string]any{"name": hostile, "description": hostile, "tags": []string{hostile}, "post_to_chat": true, "chat_message_format": hostile[:2] + "[event.properties." + "plan]" + "<script>alert(4)</script>",
		"steps": []any{map[string]any{"event": hostile, "url": hostile, "url_matching": "exact", "properties": []any{map[string]any{"key": hostile, "type": "event", "operator": "exact", "value": []string{hostile}}}}}})
	inBrowser(t, s, "actions.mjs", map[string]any{"room": room.URL})
}

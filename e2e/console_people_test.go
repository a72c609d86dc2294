//go:build e2e

package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// send captures events of one request each, in order, and waits until all are stored.
func (s *server) send(t *testing.T, events ...map[string]any) {
	t.Helper()
	for _, e := range events {
		e["api_key"] = s.project
		s.do(t, http.MethodPost, "/capture/", e, nil, http.StatusOK)
	}
	s.do(t, http.MethodPost, "/capture/", map[string]any{"api_key": s.project, "event": "sent all", "distinct_id": "ada"}, nil, http.StatusOK)
	eventually(t, time.Minute, "the events are stored", func() error {
		if len(s.stored(t, "sent+all")) == 0 {
			return fmt.Errorf("not stored: sent all")
		}
		return nil
	})
}

// TestConsolePeople works with the pages of persons and groups in Chromium: searching,
// filters of properties, pages, the profile with all its tabs, splitting, deleting with the
// events, and groups with who is related. Names, ids, properties, keys and events are hostile.
func TestConsolePeople(t *testing.T) { onDatabases(t, testConsolePeople) }

func testConsolePeople(t *testing.T, database []string) {
	s := start(t, database...)
	s.do(t, http.MethodPost, "/api/projects/1/feature_flags/", map[string]any{"key": "pro-nav", "filters": map[string]any{"groups": []any{
		map[string]any{"properties": []any{map[string]any{"key": "plan", "type": "person", "operator": "exact", "value": []string{"pro"}}}, "rollout_percentage": 100}}}}, nil, http.StatusCreated)
	ago := func(d time.Duration) string { return time.Now().Add(-d).Format(time.RFC3339Nano) }
	events := []map[string]any{
		{"event": "page seen", "distinct_id": "anon-1", "timestamp": ago(2 * time.Minute), "properties": map[string]any{"$current_url": "https://example.com/pricing"}},
		{"event": "$identify", "distinct_id": "ada", "timestamp": ago(time.Minute), "properties": map[string]any{"$anon_distinct_id": "anon-1", "$set": map[string]any{
			"email": "ada@example.com", "name": "Ada Lovelace", "plan": "pro", "seats": 12, "beta": true, "churned_at": nil, "$browser": "Firefox",
			"address": map[string]any{"city": "London", "street": "St James's Square", "geo": []float64{51.507, -0.135}, "tags": []string{"home", "billing"}},
			"about":   strings.Repeat("She wrote the first program. ", 20),
		}}},
		{"event": "$create_alias", "distinct_id": "ada", "properties": map[string]any{"alias": "ada-phone"}},
		{"event": "paid", "distinct_id": "ada", "properties": map[string]any{"amount": 20, "$groups": map[string]any{"company": "acme"}}},
		{"event": "paid", "distinct_id": "grace", "properties": map[string]any{"amount": 5, "$groups": map[string]any{"company": "acme"}}},
		{"event": "$groupidentify", "distinct_id": "ada", "properties": map[string]any{"$group_type": "company", "$group_key": "acme", "$group_set": map[string]any{"name": "Acme", "seats": 40}}},
		{"event": "$groupidentify", "distinct_id": "ada", "properties": map[string]any{"$group_type": "company", "$group_key": "../a/b?" + hostile, "$group_set": map[string]any{"name": hostile, hostile: hostile}}},
		{"event": hostile, "distinct_id": hostile, "properties": map[string]any{hostile: hostile, "$current_url": "javascript:alert(4)", "$set": map[string]any{"name": hostile, hostile: hostile}}},
	}
	for i := range 60 {
		events = append(events, map[string]any{"event": "visited", "distinct_id": fmt.Sprintf("visitor-%02d", i), "properties": map[string]any{"$set": map[string]any{"plan": "free"}}})
	}
	for range 55 {
		events = append(events, map[string]any{"event": "clicked", "distinct_id": "ada"})
	}
	s.send(t, events...)
	inBrowser(t, s, "people.mjs", nil)
}

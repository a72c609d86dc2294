//go:build e2e

package e2e_test

import (
	"net/http"
	"testing"
)

// TestConsoleLive watches events arrive in Chromium: filters, a pause, the journey of an
// event, a burst, and the end of the session.
func TestConsoleLive(t *testing.T) { onDatabases(t, testConsoleLive) }

func testConsoleLive(t *testing.T, database []string) {
	s := start(t, database...)
	s.do(t, http.MethodPost, "/api/projects/1/actions/", map[string]any{"name": hostile, "steps": []any{map[string]any{"event": "bought"}}}, nil, http.StatusCreated)
	inBrowser(t, s, "live.mjs", nil)
}

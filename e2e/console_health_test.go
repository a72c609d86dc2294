//go:build e2e

package e2e_test

import "testing"

// TestConsoleHealth reads the page Health in Chromium as an operator and as a user who is
// none, while the server gets events of which one is too large.
func TestConsoleHealth(t *testing.T) { onDatabases(t, testConsoleHealth) }

func testConsoleHealth(t *testing.T, database []string) {
	inBrowser(t, start(t, database...), "health.mjs", nil)
}

//go:build e2e

package e2e_test

import "testing"

// newUserLimit is how long someone new may take, in seconds, from the link that the first
// run prints to a flag that was seen in a page and killed.
const newUserLimit = 180

// TestNewUser goes from the link of the first run to a flag that is on for half of the
// visitors of a page with the real browser client, with the file that the console shows and
// the command beside it, and kills it: no visitor sees the feature any more.
func TestNewUser(t *testing.T) { onDatabases(t, testNewUser) }

func testNewUser(t *testing.T, database []string) {
	s := start(t, database...)
	if s.link == "" {
		t.Fatal("the first run prints no link to sign in")
	}
	got := inBrowser(t, s, "newuser.mjs", map[string]any{"link": s.link, "binary": binary(t), "data": s.data})
	if t.Failed() {
		return
	}
	// 24 visits of half: fewer than 3 or more than 21 are as likely as 1 in 28,000.
	if got.Visits != 24 || got.On < 3 || got.On > 21 {
		t.Errorf("%d of %d visitors saw the feature; want about half", got.On, got.Visits)
	}
	if got.After != 0 {
		t.Errorf("%d visitors saw the feature after it was killed", got.After)
	}
	t.Logf("%.0f s of a person by the keystroke-level model, %.1f s of the machine; %d of %d saw the feature", got.Hands, got.Machine, got.On, got.Visits)
	if got.Hands < 20 || got.Hands > newUserLimit {
		t.Errorf("%.0f s of a person; want at most %d", got.Hands, newUserLimit)
	}
}

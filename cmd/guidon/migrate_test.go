package main_test

import (
	"os"
	"strings"
	"testing"
)

func TestMigrateUpAndDown(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	s.expect(t, 0, "migrate --dry-run", "there is no database: guidon migrate would create it")
	s.expect(t, 1, "migrate --status", "missing", "run guidon migrate")
	s.expect(t, 1, "migrate --to 3 -y", "there is no database to migrate")
	if _, err := os.Stat(s.data()); !os.IsNotExist(err) {
		t.Errorf("a command that prints made the data directory: %v", err)
	}
	s.expect(t, 0, "migrate")
	s.expect(t, 0, "migrate --status -o json", `"state": "applied"`)
	s.expect(t, 0, "migrate --dry-run", "nothing to migrate")
	s.expect(t, 1, "migrate --to 99999 -y", "--to: this binary has no schema step 99999")
	status := strings.Split(strings.TrimSpace(s.expect(t, 0, "migrate --status")), "\n")
	before := strings.Fields(status[len(status)-3])[0] // the newest step but two
	s.expect(t, 0, "migrate --dry-run --to "+before, "down  ")
	s.expect(t, 2, "migrate --to "+before, "take back 2 schema steps", "is lost; confirm with --yes")
	s.expect(t, 0, "migrate --to "+before+" -y", "is at schema "+before)
	s.expect(t, 1, "migrate --status", "missing")
	s.expect(t, 0, "migrate --dry-run", "up  ")
	s.expect(t, 1, "project list", "run guidon migrate")
	s.expect(t, 0, "migrate")
	s.start(t)
	s.expect(t, 0, "migrate --status", "applied")
	s.expect(t, 1, "migrate --to "+before+" -y", "stop the server before the migration")
	s.expect(t, 0, "migrate --status")
}

package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManagementWithoutAServer runs the commands on a stopped server's database, and
// checks that they are refused while the server runs.
func TestManagementWithoutAServer(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	s.expect(t, 1, "flag list --local", "no guidon database")
	if _, err := os.Stat(filepath.Join(s.dir, "data")); !os.IsNotExist(err) {
		t.Error("the command made a data directory")
	}
	s.start(t)
	s.capture(t, "signup", "ada", `{"$set":{"email":"ada@example.com"}}`)
	s.capture(t, "signup", "bob", `{"$set":{"email":"bob@example.com"}}`)
	s.expect(t, 1, "flag list --local", "a running server has the data directory", "--server URL")
	if err := s.stop(t); err != nil {
		t.Fatal(err)
	}

	s.expect(t, 5, "flag list", "no server answers")
	s.expect(t, 80, "key list", "name the owner")
	s.expect(t, 80, "key list --user 1 --project 1", "can't be used together")
	s.expect(t, 0, "flag create beta --rollout 100 --local", "beta is on, version 1")
	s.expect(t, 2, "flag off beta --local", "confirm with --yes")
	s.expect(t, 0, "flag off beta --yes --local", "beta is off, version 2")
	s.expect(t, 0, "flag rollback beta 1 --yes --local", "version 3")
	s.expect(t, 0, "flag history beta --local", "command line", "active: true -> false")
	s.expect(t, 1, "flag create beta --local", "There is already a feature flag with this key.")
	s.expect(t, 3, "flag get none --local")
	s.expect(t, 3, "flag list --project 9 --local", "Project not found.")
	s.expect(t, 3, "deadletter show 1", "No such dead letter.")
	s.expect(t, 0, "flag list --data data", "beta")
	s.expect(t, 0, "flag explain beta ada --data data/guidon.db", "beta = true")
	s.expect(t, 0, "action create Signups --event signup --local")
	s.expect(t, 0, "action count Signups --local", "2\n")
	s.expect(t, 0, "action people Signups --local", "ada@example.com", "bob@example.com")
	s.expect(t, 0, "cohort create Ada -p email=ada@example.com --local")
	s.expect(t, 0, "cohort persons Ada --local", "ada@example.com")
	s.expect(t, 0, "person find ada --local", "ada@example.com")
	s.expect(t, 0, "person show bob --local", "beta = true", "newest events (1):")
	s.expect(t, 0, "person erase ada --with-events --yes --local", "(ada@example.com) is erased")
	s.expect(t, 3, "person show ada --local")
	s.expect(t, 0, "key list --project 1 --data data", "phc_")
	if out := s.expect(t, 0, "event tail --data data", `"distinct_id":"bob"`); strings.Contains(out, `"ada"`) {
		t.Errorf("events of an erased person: %s", out)
	}
	s.expect(t, 1, "export --local --to copy --since yesterdy", "since")
	s.expect(t, 0, "export --local --to copy --since 2020-01-01", "definitions: ", "events: 1 in copy")
	s.expect(t, 1, "export --local --to copy", "other options")
	other := filepath.Join(t.TempDir(), "other")
	migrate := s.command("migrate")
	migrate.Env = append(migrate.Env, "GUIDON_DATA_DIR="+other)
	if out, err := migrate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.expect(t, 1, "flag list --data "+other, "the database has no project")

	out := s.expect(t, 0, "audit export", `"user_name":"command line"`)
	for _, want := range []string{`"scope":"FeatureFlag"`, `"scope":"Action"`, `"scope":"Cohort"`, `"scope":"Person"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no entry with %s", want)
		}
	}
	s.expect(t, 0, "audit verify", "not sealed yet 0")

	s.start(t) // the server works with what the commands left
	until(t, func() string {
		var f struct{ Results []struct{ Key string } }
		if s.get(t, "/api/projects/1/feature_flags/", &f); len(f.Results) != 1 || f.Results[0].Key != "beta" {
			return "the server does not list the flag"
		}
		return ""
	})
	// The key of the commands is not that of a server.
	res, err := http.Get(s.url + "/api/projects/1/feature_flags/?personal_api_key=phx_")
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", res.StatusCode)
	}
}

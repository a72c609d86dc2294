package main_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db"
)

// A first start on a taken port changes nothing, so the next one is a first run.
func TestFirstRunOnATakenPort(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	taken, err := net.Listen("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.guidon("serve")
	if err == nil || !strings.Contains(out, "listen on "+s.address) {
		t.Errorf("got %q (%v), want an error that names the address", out, err)
	}
	if _, err := os.Stat(s.data()); !os.IsNotExist(err) {
		t.Errorf("the failed start made %s", s.data())
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	s.start(t) // waits for both keys
	var me struct{ Email string }
	s.get(t, "/api/users/@me", &me)
	if me.Email == "" {
		t.Error("the printed personal key does not work")
	}
}

var createKey = regexp.MustCompile(`guidon (key create --user \d+)`)

// Until a personal key is used, each start prints how to get one.
func TestStartsPrintHowToGetAKeyUntilOneIsUsed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	if err := s.stop(t); err != nil {
		t.Fatal(err)
	}
	restart := func() string {
		before, _ := os.ReadFile(s.log.Name())
		s.start(t)
		if err := s.stop(t); err != nil {
			t.Fatal(err)
		}
		after, _ := os.ReadFile(s.log.Name())
		return string(after[len(before):])
	}
	printed := createKey.FindStringSubmatch(restart())
	if printed == nil {
		t.Fatal("the second start does not print how to get a key")
	}
	key, err := s.guidon(strings.Fields(printed[1])...)
	if err != nil {
		t.Fatalf("%v: %s", err, key)
	}
	s.start(t)
	s.personal = regexp.MustCompile(`phx_\S+`).FindString(key)
	s.get(t, "/api/users/@me", &struct{}{})
	if err := s.stop(t); err != nil { // writes when keys were used
		t.Fatal(err)
	}
	if createKey.MatchString(restart()) {
		t.Error("a start prints how to get a key although one was used")
	}
}

// TestOlderSchemaBesideAServer reverts a step under a running server, as if the
// binary on the disk were newer than the server: a second server and a migration
// fail at the lock and change nothing.
func TestOlderSchemaBesideAServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	older := func() int {
		d, err := db.Open(t.Context(), db.Config{}, s.data())
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		current, known, err := d.Version(t.Context())
		if err == nil && current == known {
			err = d.Revert(t.Context(), 1)
			current, _, _ = d.Version(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return current
	}
	if out, err := s.guidon("migrate"); err != nil {
		t.Errorf("nothing to migrate beside a server: %q (%v)", out, err)
	}
	before := older()
	other := *s
	other.address, other.admin = "127.0.0.1:0", "127.0.0.1:0"
	for _, c := range []struct{ command, want string }{{"serve", "already open by process"}, {"migrate", "stop the server before the migration"}, {"migrate --while-serving", "stop the server"}} {
		out, err := other.guidon(strings.Fields(c.command)...)
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: got %q (%v), want %q", c.command, out, err, c.want)
		}
		if after := older(); after != before {
			t.Errorf("%s migrated from %d to %d", c.command, before, after)
		}
	}
	if code, err := s.post("/capture/", `{"api_key":"`+s.project+`","event":"e","distinct_id":"u"}`); err != nil || code != http.StatusOK {
		t.Errorf("capture: %d %v", code, err)
	}
	if err := s.stop(t); err != nil {
		t.Fatal(err)
	}
	if out, err := s.guidon("migrate"); err != nil {
		t.Errorf("migrate after the stop: %q (%v)", out, err)
	}
}

// Kubernetes sets these variables in every pod beside a service called guidon.
func TestServiceVariablesStopNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, name := range []string{"project list", "migrate", "project list"} {
		out, err := shell(s.dir, "GUIDON_DATA_DIR="+filepath.Join(s.dir, "d")+" GUIDON_PORT=tcp://10.96.0.12:8000 GUIDON_SERVICE_HOST=10.96.0.12 GUIDON_SERVICE_PORT=8000 GUIDON_PORT_8000_TCP_ADDR=10.96.0.12 "+bin+" "+name)
		if strings.Contains(out, "is not a setting") || (err != nil && !strings.Contains(out, "no guidon database")) {
			t.Errorf("%s: %q (%v)", name, out, err)
		}
	}
}

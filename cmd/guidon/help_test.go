package main_test

import (
	"os"
	"strings"
	"testing"
)

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, args := range [][]string{{"--version"}, {"-v"}, {"version"}} {
		if out, err := s.guidon(args...); err != nil || !strings.HasPrefix(out, "guidon ") || strings.Count(out, "\n") != 1 {
			t.Errorf("%v: %q (%v)", args, out, err)
		}
	}
	for _, args := range [][]string{{"help"}, {"help", "key"}, {"help", "key", "create"}} {
		if out, err := s.guidon(args...); err != nil || !strings.Contains(out, "Usage: guidon "+strings.Join(args[1:], " ")) {
			t.Errorf("%v: %q (%v)", args, out, err)
		}
	}
	if out, err := s.guidon("help", "kye"); err == nil || !strings.Contains(out, "kye") {
		t.Errorf("help of an unknown command: %q (%v)", out, err)
	}
}

func TestCommandErrorsAreSentences(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	if out, err := s.guidon("migrate"); err != nil {
		t.Fatal(out, err)
	}
	for want, args := range map[string][]string{
		"guidon: project_id: There is no such project.\n":                  {"key", "create", "--project", "99"},
		"guidon: there is no key with the id 1: key list prints the ids\n": {"key", "revoke", "--project", "99", "1"},
	} {
		if out, err := s.guidon(args...); err == nil || out != want {
			t.Errorf("%v: %q (%v), want %q", args, out, err, want)
		}
	}
}

// TestChangesAskFirst checks that every command that deletes or turns off something
// prints how much it affects, and changes nothing without --yes.
func TestChangesAskFirst(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	s.start(t)
	s.expect(t, 0, "project create Second", "project 2")
	s.expect(t, 0, "user create grace@example.com --operator", "user 2")
	s.expect(t, 0, "key create --user 2")
	s.expect(t, 0, "key create --project 2 --secret")
	for line, what := range map[string]string{
		"key revoke --project 2 2":          "its owner has 0 other active project keys",
		"key revoke --user 2 2":             "last used -: requests with it are refused",
		"key revoke --project 2 --secret 1": "revoke secret key 1",
		"key rotate --project 2":            "rotate the secret of project 2",
		"key rotate --project 2 1":          "its old secret is refused at once",
		"project revoke 2":                  "close project 2 (Second): requests with 1 project key and 1 secret key are refused",
		"user revoke 2":                     "requests with 1 personal key are refused",
		"user operator revoke 2":            "the server has 1 other operator",
		"deadletter delete --all":           "delete 0 dead letters",
		"plugin pause lines":                "pause sink lines, which is",
		"project retention --keep 90d":      "delete 0 events",
	} {
		s.expect(t, 2, line, what, "confirm with --yes")
		s.expect(t, 0, line+" --dry-run", "would ")
	}
	s.expect(t, 0, "key list --project 2", "active")
	s.expect(t, 0, "key list --user 2", "active")
	s.expect(t, 0, "key list --project 2 --secret", "active")
	s.expect(t, 1, "key create --project 1 --scopes event:read", "--scopes is for personal keys")
	s.expect(t, 1, "key create --user 1 --key phx_mine", "--key is for project keys")
	s.expect(t, 0, "user list", "yes")
	s.expect(t, 0, "user list -o yaml", "operator: true")
	s.expect(t, 0, "project list -o json", `"name": "My project"`)
	s.expect(t, 0, "plugin status lines", `"state": "ready"`)

	s.expect(t, 3, "key revoke --project 2 9 --yes", "no key with the id 9")
	s.expect(t, 0, "key revoke --project 2 --secret 1 --yes", "secret key 1 is revoked")
	s.expect(t, 0, "project revoke 2 --yes", "project 2 is closed")
	s.expect(t, 0, "user operator revoke 2 --yes")
	s.expect(t, 0, "user revoke 2 --yes", "user 2 is revoked")
	s.expect(t, 0, "plugin pause lines --yes", "lines paused")
}

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	for line, want := range map[string]string{
		"falg list":      `guidon: unexpected argument falg, did you mean "flag"?`,
		"flag lsit":      `did you mean one of "list", "edit"?`,
		"flag list --ou": `unknown flag --ou`,
		"user":           `expected one of "create"`,
		"help nope":      `unexpected argument nope`,
		"context use x":  "",
	} {
		code := 80
		if want == "" {
			code, want = 3, `no context "x"`
		}
		if out := s.expect(t, code, line, want); line != "user" && strings.Count(out, "\n") > 8 {
			t.Errorf("guidon %s prints\n%s", line, out)
		}
	}
}

func TestConfigIsCheckedBeforeAnythingIsOpened(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.address = "localhost"
	out, err := s.guidon("serve")
	if err == nil || !strings.Contains(out, "http.address") {
		t.Errorf("got %q (%v)", out, err)
	}
	if _, err := os.Stat(s.data()); !os.IsNotExist(err) {
		t.Errorf("the data directory was created: %v", err)
	}
}

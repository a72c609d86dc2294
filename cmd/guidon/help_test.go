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
		"guidon: project_id: There is no such project.\n": {"key", "create", "--project", "99"},
		"guidon: revoke project key: Not found.\n":        {"key", "revoke", "--project", "99", "1"},
	} {
		if out, err := s.guidon(args...); err == nil || out != want {
			t.Errorf("%v: %q (%v), want %q", args, out, err, want)
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

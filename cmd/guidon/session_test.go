package main_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var linkText = regexp.MustCompile(`(\S+)/sign-in#link=(\S+)`)

func TestLinksAndSessionsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	s.start(t)
	s.expect(t, 3, "user login-link nobody@example.com", "no user with the address")
	s.expect(t, 0, "user login-link admin@localhost --reset", "chooses a password for admin@localhost", "/reset-password#token=gdl_")
	found := linkText.FindStringSubmatch(s.expect(t, 0, "user login-link admin@localhost", "signs in admin@localhost"))
	if found == nil || found[1] != s.url {
		t.Fatalf("no link: %q", found)
	}
	for _, want := range []int{200, 401} {
		res, err := http.Post(s.url+"/api/session/link", "application/json", strings.NewReader(`{"token":"`+found[2]+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("the link: %d %s, want %d", res.StatusCode, text, want)
		}
	}
	s.expect(t, 0, "session list", "link", "Go-http-client")
	s.expect(t, 0, "session list --all", "admin@localhost")
	s.expect(t, 2, "session revoke 1", "end session 1", "confirm with --yes")
	s.expect(t, 0, "session revoke 1 --yes", "session 1 has ended")
	s.expect(t, 3, "session revoke 1 --yes", "no session 1")
}

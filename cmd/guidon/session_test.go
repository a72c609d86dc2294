package main_test

import (
	"io"
	"net/http"
	"os"
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

func TestConsoleOnAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	s := tool{newServer(t)}
	console := freeAddress(t)
	config, err := os.ReadFile(s.config())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.config(), append(config, []byte("http:\n  console_address: "+console+"\n")...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	printed, err := os.ReadFile(s.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	if at := linkText.FindSubmatch(printed); at != nil && string(at[1]) != "http://"+console {
		t.Errorf("the first run prints a link to %s", at[1])
	}
	found := linkText.FindStringSubmatch(s.expect(t, 0, "user login-link admin@localhost"))
	if found == nil || found[1] != "http://"+console {
		t.Fatalf("the link leads to %q, want http://%s", found, console)
	}
	signIn := func(url string) *http.Response {
		res, err := http.Post(url+"/api/session/link", "application/json", strings.NewReader(`{"token":"`+found[2]+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	if res := signIn(s.url); res.StatusCode != http.StatusNotFound || len(res.Cookies()) > 0 {
		t.Errorf("at the address of clients the link answers %d with %d cookies", res.StatusCode, len(res.Cookies()))
	}
	res := signIn("http://" + console)
	if res.StatusCode != http.StatusOK || len(res.Cookies()) != 1 {
		t.Fatalf("the link answers %d with %d cookies", res.StatusCode, len(res.Cookies()))
	}
	for url, want := range map[string]int{"http://" + console: 200, s.url: 401} {
		req, err := http.NewRequest(http.MethodGet, url+"/api/session", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(res.Cookies()[0])
		got, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("the session at %s: %d, want %d", url, got.StatusCode, want)
		}
	}
}

package app_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/app"
)

// With http.console_address the routes that the table marks are there and on the admin
// address, and the public address answers 404. Each route for operators is among them.
func TestRoutesOfTheConsoleAddress(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *app.Config) { c.HTTP.ConsoleAddress = "127.0.0.1:0" })
	ask := func(base string, a access) (int, string) {
		t.Helper()
		path := regexp.MustCompile(`:[a-z_]+`).ReplaceAllString(a.path, "none")
		req, err := http.NewRequestWithContext(t.Context(), a.method, base+path, strings.NewReader("{}"))
		check(t, err)
		req.Header.Set("Authorization", "Bearer "+s.PersonalKey)
		req.Header.Set("Content-Type", "application/json")
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := client.Do(req)
		check(t, err)
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		check(t, err)
		return res.StatusCode, string(body)
	}
	const elsewhere = "http.console_address"
	asked := 0
	for _, a := range readAccess(t) {
		if a.address != "public" {
			continue
		}
		if a.need("operator") && !a.need("console") {
			t.Errorf("%s is for operators and not marked as of the address of the console", a.name())
		}
		if !a.need("console") {
			continue
		}
		asked++
		if status, body := ask(s.URL, a); status != http.StatusNotFound || !strings.Contains(body, elsewhere) {
			t.Errorf("%s on the public address: %d %.200s", a.name(), status, body)
		}
		if status, body := ask(s.ConsoleURL(), a); strings.Contains(body, elsewhere) || status == http.StatusUnauthorized && a.need("operator") {
			t.Errorf("%s on the address of the console: %d %.200s", a.name(), status, body)
		}
	}
	if asked < 20 {
		t.Errorf("only %d routes are marked", asked)
	}
}

package web_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// consolePages has a page of the console, one of the API and one that prints URLs.
type consolePages struct{}

func (consolePages) Routes(r *web.Router) {
	say := func(text string) fiber.Handler { return func(c *fiber.Ctx) error { return c.SendString(text) } }
	r.Public(fiber.MethodGet, "/console", r.OnlyConsole(say("console")))
	r.Public(fiber.MethodGet, "/decide", say("decided"))
	r.Public(fiber.MethodGet, "/urls", func(c *fiber.Ctx) error {
		return c.SendString(r.BaseURL(c) + " " + r.ConsoleURL(c))
	})
}

func TestConsoleHasAnAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.ConsoleAddress = "127.0.0.1:0"
	s := webtest.Start(t, cfg, nil, zap.NewNop(), nil, consolePages{})
	get := func(url string) (int, string) {
		t.Helper()
		res, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	if s.ConsoleURL() == s.URL() || s.ConsoleURL() == "" {
		t.Fatalf("console at %q, clients at %q", s.ConsoleURL(), s.URL())
	}
	for _, test := range []struct {
		url    string
		status int
		want   string
	}{
		{s.URL() + "/console", 404, "http.console_address"},
		{s.ConsoleURL() + "/console", 200, "console"},
		{s.URL() + "/decide", 200, "decided"},
		{s.ConsoleURL() + "/decide", 200, "decided"},
		{s.URL() + "/urls", 200, s.URL() + " " + s.ConsoleURL()},
		{s.ConsoleURL() + "/urls", 200, s.ConsoleURL() + " " + s.ConsoleURL()},
		{s.ConsoleURL() + "/none", 404, "not_found"},
		{s.AdminURL() + "/console", 404, "not_found"},
	} {
		if status, body := get(test.url); status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s: %d %s, want %d with %s", test.url, status, body, test.status, test.want)
		}
	}
}

func TestConsoleAddressIsChecked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*web.Config){
		"console_address is the same": func(c *web.Config) { c.ConsoleAddress = c.Address },
		"console_url is for":          func(c *web.Config) { c.ConsoleURL = "https://console.example.com" },
		"console_url must look like":  func(c *web.Config) { c.ConsoleAddress, c.ConsoleURL = "127.0.0.1:8002", "console" },
	} {
		cfg := web.DefaultConfig()
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

// The path of site_url is not one of the console, and not one at its address.
func TestConsoleIsNotBelowThePathOfTheSite(t *testing.T) {
	t.Parallel()
	cfg := webtest.Config()
	cfg.SiteURL = "https://example.com/guidon/"
	if got := cfg.ConsoleSite(); got != "https://example.com" {
		t.Errorf("site %q", got)
	}
	cfg.ConsoleAddress = "127.0.0.1:0"
	if got := cfg.ConsoleSite(); got != "" {
		t.Errorf("site at another address %q", got)
	}
	cfg.ConsoleURL = "https://console.example.com"
	if got := cfg.ConsoleSite(); got != cfg.ConsoleURL {
		t.Errorf("site at another URL %q", got)
	}
	s := webtest.Start(t, cfg, nil, zap.NewNop(), nil, originPage{})
	for url, want := range map[string]string{s.URL(): "https://example.com /guidon", s.ConsoleURL(): "https://console.example.com "} {
		res, err := http.Get(url + "/origin")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(body) != want {
			t.Errorf("origin at %s: %q, %v, want %q", url, body, err, want)
		}
	}
}

// originPage prints the origin of links.
type originPage struct{}

func (originPage) Routes(r *web.Router) {
	r.Public(fiber.MethodGet, "/origin", func(c *fiber.Ctx) error {
		origin, prefix := r.Origin(c)
		return c.SendString(origin + " " + prefix)
	})
}

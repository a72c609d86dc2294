package web_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
	"go.uber.org/zap"
)

func registerListRoutes(g *web.Router) {
	g.Manage("GET", "/api/projects/:project_id/things/", "", func(c *web.Call) error {
		return c.List(c.Page(), 250, []int{1, 2})
	})
	g.Manage("GET", "/api/none/", "", func(c *web.Call) error { return c.List(c.Page(), 0, []int(nil)) })
}

func TestListPages(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routesFunc(registerListRoutes))
	at := base + "/api/projects/@current/things/"
	for name, tc := range map[string]struct{ query, next, previous string }{
		"the first of the default size":     {"", "?limit=100&offset=100", ""},
		"the second":                        {"?offset=100", "?limit=100&offset=200", "?limit=100"},
		"the last":                          {"?limit=100&offset=200", "", "?limit=100&offset=100"},
		"a page that covers everything":     {"?limit=1000", "", ""},
		"a limit over the cap":              {"?limit=5000", "", ""},
		"a limit of nothing is the default": {"?limit=0", "?limit=100&offset=100", ""},
		"so is a negative one":              {"?limit=-5", "?limit=100&offset=100", ""},
		"and one that is no number":         {"?limit=all", "?limit=100&offset=100", ""},
		"a bad offset is none":              {"?offset=x&limit=200", "?limit=200&offset=200", ""},
		"so is a negative one too":          {"?offset=-1", "?limit=100&offset=100", ""},
		"a step back past the start":        {"?limit=100&offset=50", "?limit=100&offset=150", "?limit=100"},
		"past the end":                      {"?limit=100&offset=1000", "", "?limit=100&offset=200"},
		"a personal key is not repeated":    {"?personal_api_key=phx_test&limit=100", "?limit=100&offset=100", ""},
		"other parameters stay as they are": {"?search=a%20b&limit=100&active=true&offset=100&x", "?search=a%20b&active=true&x&limit=100&offset=200", "?search=a%20b&active=true&x&limit=100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, "GET", at+tc.query, "", bearer)
			var e struct {
				Count          int
				Next, Previous *string
				Results        []int
			}
			if err := json.Unmarshal([]byte(got.body), &e); err != nil || e.Count != 250 || len(e.Results) != 2 {
				t.Fatalf("%v: %s", err, got.body)
			}
			for what, pair := range map[string][2]string{"next": {link(e.Next), tc.next}, "previous": {link(e.Previous), tc.previous}} {
				want := pair[1]
				if want != "" {
					want = at + want
				}
				if pair[0] != want {
					t.Errorf("%s = %q, want %q", what, pair[0], want)
				}
			}
		})
	}
	if got := call(t, "GET", base+"/api/none", "", bearer); got.body != `{"count":0,"next":null,"previous":null,"results":[]}` {
		t.Errorf("an empty list: %s", got.body)
	}
}

func link(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestLinksUseTheClientsBaseURL(t *testing.T) {
	t.Parallel()
	const path = "/api/projects/1/things?limit=100&offset=100"
	for name, tc := range map[string]struct {
		site    string
		trusted []string
		headers []string
		want    string
	}{
		"the host that was asked for":         {"", nil, []string{"Host: flags.example"}, "http://flags.example" + path},
		"what a trusted proxy says":           {"", []string{"loopback"}, []string{"X-Forwarded-Proto: https", "X-Forwarded-Host: flags.example:8443", "X-Forwarded-Prefix: /guidon/"}, "https://flags.example:8443/guidon" + path},
		"the first of several":                {"", []string{"127.0.0.1"}, []string{"X-Forwarded-Proto: https, http", "X-Forwarded-Host: a.example, b.example"}, "https://a.example" + path},
		"not from an untrusted sender":        {"", []string{"10.0.0.0/8"}, []string{"Host: real.example", "X-Forwarded-Host: evil.example", "X-Forwarded-Proto: https"}, "http://real.example" + path},
		"not what cannot be":                  {"", []string{"loopback"}, []string{"Host: real.example", "X-Forwarded-Host: a<b", "X-Forwarded-Proto: ftp", "X-Forwarded-Prefix: //evil.example"}, "http://real.example" + path},
		"the address of the config, whatever": {"https://flags.example/base/", []string{"loopback"}, []string{"X-Forwarded-Host: other.example"}, "https://flags.example/base" + path},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := webtest.Config()
			cfg.SiteURL, cfg.TrustedProxies = tc.site, tc.trusted
			s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(registerListRoutes))
			got := call(t, "GET", "http://"+s.Address()+"/api/projects/1/things", "", append(tc.headers, bearer)...)
			var e struct{ Next string }
			if err := json.Unmarshal([]byte(got.body), &e); err != nil || e.Next != tc.want {
				t.Errorf("next = %q, want %q", e.Next, tc.want)
			}
		})
	}
}

func TestClientIPBehindProxies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		trusted []string
		headers []string
		want    string
	}{
		"without a proxy":                    {[]string{"loopback"}, nil, "127.0.0.1"},
		"behind one":                         {[]string{"loopback"}, []string{"X-Forwarded-For: 203.0.113.7"}, "203.0.113.7"},
		"behind two":                         {[]string{"loopback", "private"}, []string{"X-Forwarded-For: 203.0.113.7, 10.1.2.3"}, "203.0.113.7"},
		"what the client made up is ignored": {[]string{"loopback"}, []string{"X-Forwarded-For: 1.2.3.4, 203.0.113.7"}, "203.0.113.7"},
		"an untrusted sender is ignored":     {[]string{"10.0.0.0/8"}, []string{"X-Forwarded-For: 203.0.113.7"}, "127.0.0.1"},
		"with a port":                        {[]string{"loopback"}, []string{"X-Forwarded-For: 203.0.113.7:5000"}, "203.0.113.7"},
		"in the sixth version":               {[]string{"loopback"}, []string{"X-Forwarded-For: [2001:db8::1]:443"}, "2001:db8::1"},
		"by the other header":                {[]string{"loopback"}, []string{"X-Real-IP: 203.0.113.7"}, "203.0.113.7"},
		"all of them trusted":                {[]string{"loopback", "private"}, []string{"X-Forwarded-For: 10.0.0.1, 10.0.0.2"}, "10.0.0.1"},
		"nonsense":                           {[]string{"loopback"}, []string{"X-Forwarded-For: unknown"}, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := webtest.Config()
			cfg.TrustedProxies = tc.trusted
			s := webtest.Start(t, cfg, webtest.DefaultKeys(), zap.NewNop(), nil, routesFunc(func(g *web.Router) {
				g.Manage("GET", "/api/ip", "", func(c *web.Call) error { return c.SendString(g.IP(c.Ctx).String()) })
			}))
			if got := call(t, "GET", "http://"+s.Address()+"/api/ip", "", append(tc.headers, bearer)...); got.body != tc.want {
				t.Errorf("IP = %s, want %s", got.body, tc.want)
			}
		})
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	if err := web.DefaultConfig().Validate(); err != nil {
		t.Fatalf("the default config: %v", err)
	}
	for key, spoil := range map[string]func(*web.Config){
		"address":         func(c *web.Config) { c.Address = "" },
		"body_bytes":      func(c *web.Config) { c.BodyBytes = 0 },
		"inflated_bytes":  func(c *web.Config) { c.InflatedBytes = -1 },
		"json_depth":      func(c *web.Config) { c.JSONDepth = 301 },
		"max_connections": func(c *web.Config) { c.MaxConnections = 0 },
		"header_bytes":    func(c *web.Config) { c.HeaderBytes = 10 },
		"read_timeout":    func(c *web.Config) { c.ReadTimeout = 0 },
		"stop_delay":      func(c *web.Config) { c.StopDelay = -1 },
		"site_url":        func(c *web.Config) { c.SiteURL = "flags.example" },
		"manage_origins":  func(c *web.Config) { c.ManageOrigins = []string{"https://a.example/path"} },
		"trusted_proxies": func(c *web.Config) { c.TrustedProxies = []string{"everybody"} },
		"public_rate":     func(c *web.Config) { c.PublicRate.PerSecond = -1 },
		"manage_rate":     func(c *web.Config) { c.ManageRate.Burst = -1 },
		"access_log":      func(c *web.Config) { c.AccessLog = "some" },
		"access_sample":   func(c *web.Config) { c.AccessSample = -1 },
	} {
		c := web.DefaultConfig()
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, want an error that names it", key, err)
		}
	}
}

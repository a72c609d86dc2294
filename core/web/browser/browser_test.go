package browser_test

import (
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/web/browser"
)

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"": "/", "/": "/", "/flags/7?x=1#y": "/flags/7?x=1#y", "flags": "/", "https://evil.example": "/", "//evil.example": "/",
		"/\\evil.example": "/", "\\/evil.example": "/", "/\t/evil.example": "/", "/a\r\nSet-Cookie: x=1": "/", " /flags": "/", "/a b": "/",
		"javascript:alert(1)": "/", "/%2f/evil.example": "/%2f/evil.example", "/é": "/", "/flags\x00": "/",
	} {
		if got := browser.LocalPath(next); got != want {
			t.Errorf("LocalPath(%q) = %q, want %q", next, got, want)
		}
	}
}

func TestCheckOrigin(t *testing.T) {
	t.Parallel()
	const base = "https://flags.example.com/guidon"
	for _, c := range []struct {
		site, origin string
		ok           bool
	}{
		{"", "", true}, {"same-origin", "", true}, {"none", "", true}, {"same-site", "", false}, {"cross-site", "", false}, {"new-value", "", false},
		{"", "https://flags.example.com", true}, {"", "http://flags.example.com", false}, {"", "https://flags.example.com.evil.example", false},
		{"", "null", false}, {"none", "https://evil.example", false}, {"cross-site", "https://flags.example.com", false},
	} {
		var r fasthttp.Request
		r.Header.Set("Sec-Fetch-Site", c.site)
		r.Header.Set("Origin", c.origin)
		if err := browser.CheckOrigin(&r, base); (err == nil) != c.ok {
			t.Errorf("Sec-Fetch-Site %q, Origin %q: %v", c.site, c.origin, err)
		}
	}
}

func TestTokensOfSessionsDiffer(t *testing.T) {
	t.Parallel()
	if a, b := browser.CSRFToken("gds_a"), browser.CSRFToken("gds_b"); a == b || len(a) != 43 || a != browser.CSRFToken("gds_a") {
		t.Errorf("%q and %q", a, b)
	}
}

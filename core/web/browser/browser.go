// Package browser reads and writes what a browser adds to its requests: the cookie of a
// session, and where the request comes from.
//
// A browser sends cookies with requests that pages of other sites make. So a request that
// may change something and has a session needs two proofs that it comes from a page of this
// server: the header X-CSRF-Token with a value that is derived from the token of the
// session, which other sites cannot read; and, if the browser sends them, the headers
// Sec-Fetch-Site and Origin must name this server. The value needs no storage, and a new
// session has another one.
//
// Over HTTPS the name of the cookie has the prefix __Host-, which keeps other hosts of the
// domain from setting it; the name without the prefix is ignored then.
package browser

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/guidonhq/guidon/core/fault"
)

// HeaderCSRF is the header with the value of CSRFToken.
const HeaderCSRF = "X-CSRF-Token"

const (
	hostPrefix    = "__Host-"
	sessionCookie = "guidon_session"
	maxToken      = 128
)

var (
	errCrossOrigin = fault.New(fault.Forbidden, "cross_origin", "The request comes from a page of another site.")
	errCSRF        = fault.New(fault.Forbidden, "csrf_failed", "The header "+HeaderCSRF+" must have the csrf_token of GET /api/session.")
)

// Name returns the name of a cookie.
func Name(name string, secure bool) string {
	if secure {
		return hostPrefix + name
	}
	return name
}

// Session returns the token of the session cookie, "" without one.
func Session(r *fasthttp.Request, secure bool) string {
	token := r.Header.Cookie(Name(sessionCookie, secure))
	if len(token) > maxToken {
		return ""
	}
	return string(token)
}

// SetSession sets the session cookie until a time.
func SetSession(h *fasthttp.ResponseHeader, token string, secure bool, expires time.Time) {
	SetCookie(h, sessionCookie, token, secure, expires, fasthttp.CookieSameSiteStrictMode)
}

// ClearSession removes the session cookie.
func ClearSession(h *fasthttp.ResponseHeader, secure bool) { ClearCookie(h, sessionCookie, secure) }

// SetCookie sets a cookie that scripts cannot read.
func SetCookie(h *fasthttp.ResponseHeader, name, value string, secure bool, expires time.Time, site fasthttp.CookieSameSite) {
	c := fasthttp.AcquireCookie()
	defer fasthttp.ReleaseCookie(c)
	c.SetKey(Name(name, secure))
	c.SetValue(value)
	c.SetPath("/")
	c.SetHTTPOnly(true)
	c.SetSecure(secure)
	c.SetSameSite(site)
	c.SetExpire(expires)
	h.SetCookie(c)
}

// ClearCookie removes a cookie that SetCookie has set.
func ClearCookie(h *fasthttp.ResponseHeader, name string, secure bool) {
	SetCookie(h, name, "", secure, fasthttp.CookieExpireDelete, fasthttp.CookieSameSiteStrictMode)
}

// CSRFToken returns the value of HeaderCSRF for the session with a token.
func CSRFToken(session string) string {
	m := hmac.New(sha256.New, []byte(session))
	m.Write([]byte("guidon csrf"))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// IsSafe reports whether requests of a method change nothing.
func IsSafe(method []byte) bool {
	switch string(method) {
	case fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodOptions:
		return true
	}
	return false
}

// CheckSession fails with Forbidden for a request of a session that may change something
// and is not proven to come from a page of the server at baseURL.
func CheckSession(r *fasthttp.Request, session, baseURL string) error {
	if IsSafe(r.Header.Method()) {
		return nil
	}
	if err := CheckOrigin(r, baseURL); err != nil {
		return err
	}
	if !hmac.Equal(r.Header.Peek(HeaderCSRF), []byte(CSRFToken(session))) {
		return errCSRF
	}
	return nil
}

// CheckOrigin fails with Forbidden if the browser says that the request comes from a page
// of another origin than that of baseURL. Programs say nothing, and pass.
func CheckOrigin(r *fasthttp.Request, baseURL string) error {
	switch site := r.Header.Peek("Sec-Fetch-Site"); string(site) {
	case "same-origin":
		return nil
	case "", "none":
	default:
		return errCrossOrigin
	}
	origin := string(r.Header.Peek(fasthttp.HeaderOrigin))
	if origin == "" || strings.EqualFold(origin, originOf(baseURL)) {
		return nil
	}
	return errCrossOrigin
}

// CheckJSON fails with Unsupported for a body that is not JSON. Forms of other sites cannot
// send JSON without a preflight, which is not answered.
func CheckJSON(r *fasthttp.Request) error {
	kind, _, _ := strings.Cut(string(r.Header.ContentType()), ";")
	if strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return nil
	}
	return fault.New(fault.Unsupported, "unsupported_media_type", "The body must be JSON, with the content type application/json.")
}

// originOf returns scheme and host of a URL.
func originOf(url string) string {
	scheme, rest, found := strings.Cut(url, "://")
	if !found {
		return ""
	}
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// LocalPath returns next if it is a path of this server, else "/". A browser takes //host,
// /\host and texts with control characters for other servers.
func LocalPath(next string) string {
	if len(next) > 2000 || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsRune(next, '\\') {
		return "/"
	}
	for _, r := range next {
		if r <= ' ' || r == 0x7f || r > 0x7f {
			return "/"
		}
	}
	return next
}

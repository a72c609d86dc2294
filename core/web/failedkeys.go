package web

import (
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/browser"
	"github.com/guidonhq/guidon/core/web/limit"
	"github.com/guidonhq/guidon/core/web/listener"
)

// FailedKey is the use of a personal key, or of a secret key of a project, that was
// refused. It does not have the key.
type FailedKey struct {
	Client    string // the address of the client
	UserAgent string // as in Origin
	Code      string // of the refusal
}

// OnFailedKey sets f, which is called for each FailedKey, before Start. f must be quick
// and safe for concurrent use.
func (s *Server) OnFailedKey(f func(FailedKey)) { s.router.auth.onFailed = f }

// projectByKey is Auth.ProjectByKey within the limit of failed keys.
func (a *authenticator) projectByKey(c *fiber.Ctx, key string) (auth.Project, error) {
	return limit.Find(c.UserContext(), a.projectFailures, a.addressOf(c), key, a.auth.ProjectByKey)
}

// principalByKey is Auth.PrincipalByKey within the limit of failed keys.
func (a *authenticator) principalByKey(c *fiber.Ctx, key string) (*auth.Principal, error) {
	p, err := limit.Find(c.UserContext(), a.personalFailures, a.addressOf(c), strings.Clone(key), a.auth.PrincipalByKey)
	noteCaller(c, p)
	if err != nil && a.onFailed != nil && (fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.Throttled)) {
		a.onFailed(FailedKey{Client: a.client(c).String(), UserAgent: userAgent(c), Code: fault.From(err).Code})
	}
	return p, err
}

// principalBySession returns the principal of the session cookie of a request to the
// public address. A request that may change something must come from an own page.
func (a *authenticator) principalBySession(c *fiber.Ctx, r *Router) (*auth.Principal, error) {
	secure := r.IsSecure(c)
	token := browser.Session(c.Request(), secure)
	if a.sessions == nil || token == "" || routeOf(c).port != r.public || r.ForConsole(c) != nil {
		return nil, errNotAuthenticated
	}
	if err := browser.CheckSession(c.Request(), token, r.BaseURL(c)); err != nil {
		return nil, err
	}
	p, err := limit.Find(c.UserContext(), a.personalFailures, a.addressOf(c), token, a.sessions.PrincipalBySession)
	if fault.Is(err, fault.Unauthenticated) && routeOf(c).pattern == "/api/session" { // elsewhere, a late answer would remove the cookie of a newer session
		browser.ClearSession(&c.Response().Header, secure)
	}
	noteCaller(c, p)
	return p, err
}

func (a *authenticator) addressOf(c *fiber.Ctx) func() netip.Addr {
	return func() netip.Addr { return listener.Client(a.client(c)) }
}

func newFailures(a Auth, cfg Config, refused func()) *limit.Failures {
	var known func(string) bool
	if k, ok := a.(interface{ Known(key string) bool }); ok {
		known = k.Known
	}
	return limit.NewFailures(cfg.FailedKeyRate, known, refused)
}

package web

import (
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/web/limit"
	"github.com/guidonhq/guidon/core/web/listener"
)

// projectByKey is Auth.ProjectByKey within the limit of failed keys.
func (a *authenticator) projectByKey(c *fiber.Ctx, key string) (auth.Project, error) {
	return limit.Find(c.UserContext(), a.projectFailures, a.addressOf(c), key, a.auth.ProjectByKey)
}

// principalByKey is Auth.PrincipalByKey within the limit of failed keys.
func (a *authenticator) principalByKey(c *fiber.Ctx, key string) (*auth.Principal, error) {
	return limit.Find(c.UserContext(), a.personalFailures, a.addressOf(c), strings.Clone(key), a.auth.PrincipalByKey)
}

func (a *authenticator) addressOf(c *fiber.Ctx) func() netip.Addr {
	return func() netip.Addr { return listener.Client(a.proxies.Client(c.Context())) }
}

func newFailures(a Auth, cfg Config, refused func()) *limit.Failures {
	var known func(string) bool
	if k, ok := a.(interface{ Known(key string) bool }); ok {
		known = k.Known
	}
	return limit.NewFailures(cfg.FailedKeyRate, known, refused)
}

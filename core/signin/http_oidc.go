package signin

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/sessions"
	"github.com/guidonhq/guidon/core/signin/oidc"
	"github.com/guidonhq/guidon/core/web/browser"
)

const (
	oidcStartPath    = sessionPath + "/oidc/start"
	oidcCallbackPath = sessionPath + "/oidc/callback"
	// oidcCookie holds the secret of a sign-in, the path that it leads to and the digest of
	// the session that it replaces, with points between them.
	oidcCookie = "guidon_oidc"
	// oidcTime is the time that a person has at the provider.
	oidcTime = 10 * time.Minute
)

var errNoOIDC = fault.New(fault.Conflict, "oidc_off", "The server has no provider of OpenID Connect.")

// startOIDC sends the browser to the provider.
func (h *HTTP) startOIDC(c *fiber.Ctx) error {
	if h.service.oidc == nil {
		return errNoOIDC
	}
	from := h.client(c)
	if err := h.service.attempts.allow(sessions.ByOIDC, from, ""); err != nil {
		return err
	}
	// The cookie of the session is not sent when the provider leads back, so its digest goes along.
	value := strings.Join([]string{apikey.New(""), base64.RawURLEncoding.EncodeToString([]byte(browser.LocalPath(c.Query("next")))), from.Former}, ".")
	to, err := h.service.oidc.Start(c.UserContext(), h.router.BaseURL(c)+oidcCallbackPath, value)
	if err != nil {
		return h.failOIDC(c, err)
	}
	// Lax: the provider leads back here by a link of another site.
	browser.SetCookie(&c.Response().Header, oidcCookie, value, h.router.IsSecure(c), time.Now().Add(oidcTime), fasthttp.CookieSameSiteLaxMode)
	return c.Redirect(to, fiber.StatusFound)
}

// finishOIDC signs in with the answer of the provider and sends the browser to where it
// wanted to go.
func (h *HTTP) finishOIDC(c *fiber.Ctx) error {
	if h.service.oidc == nil {
		return errNoOIDC
	}
	from := h.client(c)
	if err := h.service.attempts.allow(sessions.ByOIDC, from, ""); err != nil {
		return err
	}
	secure := h.router.IsSecure(c)
	value := string(c.Request().Header.Cookie(browser.Name(oidcCookie, secure)))
	browser.ClearCookie(&c.Response().Header, oidcCookie, secure)
	if problem := c.Query("error"); problem != "" {
		return h.failOIDC(c, errCancelled.Because(fault.New(fault.Invalid, "provider", problem)))
	}
	id, err := h.service.oidc.Finish(c.UserContext(), h.router.BaseURL(c)+oidcCallbackPath, value, c.Query("state"), strings.Clone(c.Query("code")))
	if err != nil {
		return h.failOIDC(c, err)
	}
	path, former := cookieParts(value)
	if from.Former == "" {
		from.Former = former
	}
	out, err := h.service.withIdentity(c.UserContext(), id, from)
	if err != nil {
		return h.failOIDC(c, err)
	}
	browser.SetSession(&c.Response().Header, out.Token, secure, out.Session.ExpiresAt)
	return h.redirect(c, path)
}

// cookieParts returns the path that the sign-in of a cookie leads to, and the digest of the
// session that the browser had.
func cookieParts(value string) (path, former string) {
	parts := strings.Split(value, ".")
	if len(parts) != 3 {
		return "/", ""
	}
	next, _ := base64.RawURLEncoding.DecodeString(parts[1])
	if _, err := hex.DecodeString(parts[2]); err == nil {
		former = parts[2]
	}
	return browser.LocalPath(string(next)), former
}

// failOIDC sends the browser to the sign-in page with the code of an error.
func (h *HTTP) failOIDC(c *fiber.Ctx, err error) error {
	f := fault.From(err)
	if f == nil || !strings.HasPrefix(f.Code, "oidc_") {
		return err
	}
	_ = h.service.attempts.refuse(sessions.ByOIDC, h.client(c), f)
	if now := time.Now().Unix(); f.Code == oidc.ErrFailed.Code && h.service.warned.Swap(now) != now { // one a second
		h.service.log.Warn("sign-in with OpenID Connect failed", zap.Error(err))
	}
	return h.redirect(c, "/sign-in#error="+f.Code)
}

// redirect sends the browser to a path of the console, which is never below another one.
func (h *HTTP) redirect(c *fiber.Ctx, path string) error {
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	return c.Redirect(path, fiber.StatusFound)
}

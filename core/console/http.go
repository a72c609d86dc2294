package console

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// The paths of the console.
const (
	root   = "/"
	prefix = "/console"
	assets = "assets/" // below the prefix: files with a hash in the name
)

// views are the paths outside of the prefix that links in messages lead to.
var views = [...]string{prefix, "/sign-in", "/reset-password", "/invitation"}

const (
	cacheImmutable = "public, max-age=31536000, immutable"
	revalidate     = "no-cache"
)

// policy allows what the console itself consists of: files of this server. No code or
// style is inline, and no other page can frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// notBuilt is the page of a server without the console.
const notBuilt = "This server was built without its console: run make build in a checkout of Guidon, which needs npm, or install a release.\n"

var errNoFile = fault.New(fault.NotFound, "not_found", "The console has no such file.")

// HTTP serves the console.
type HTTP struct {
	assets    *Assets
	elsewhere func(*fiber.Ctx) bool // the request came to an address without the console
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the handlers.
func NewHTTP(a *Assets) *HTTP { return &HTTP{assets: a} }

// Routes registers the paths.
func (h *HTTP) Routes(r *web.Router) {
	h.elsewhere = func(c *fiber.Ctx) bool { return r.ForConsole(c) != nil }
	for _, method := range []string{fiber.MethodGet, fiber.MethodHead} {
		r.Public(method, root, h.serveRoot)
		for _, path := range views {
			r.Public(method, path, r.OnlyConsole(h.serveDocument))
		}
		r.Public(method, prefix+"/*", r.OnlyConsole(h.serve))
	}
}

// serveRoot serves the document to browsers, and the name of the server to others.
func (h *HTTP) serveRoot(c *fiber.Ctx) error {
	c.Vary(fiber.HeaderAccept)
	if accepts(c.Get(fiber.HeaderAccept), fiber.MIMETextHTML) && !h.elsewhere(c) {
		return h.serveDocument(c)
	}
	return web.JSON(c, map[string]string{"name": "guidon"})
}

// serve serves a file by its name, and the document for the path of a view.
func (h *HTTP) serve(c *fiber.Ctx) error {
	name := strings.TrimPrefix(c.Path(), prefix+"/")
	f := h.assets.files[name]
	switch {
	case f == nil && strings.HasPrefix(name, assets):
		return errNoFile
	case f == nil || name == document:
		return h.serveDocument(c)
	case strings.HasPrefix(name, assets):
		return send(c, f, cacheImmutable)
	}
	return send(c, f, revalidate)
}

// serveDocument serves the page of all views. A server without the console answers with
// a sentence: 200 at /, which some probes ask for, and 404 elsewhere.
func (h *HTTP) serveDocument(c *fiber.Ctx) error {
	f := h.assets.files[document]
	if f == nil {
		c.Set(fiber.HeaderCacheControl, "no-store")
		if c.Path() != "/" {
			c.Status(fiber.StatusNotFound)
		}
		return c.SendString(notBuilt)
	}
	return send(c, f, revalidate)
}

// send answers with a file, or with 304 to a client that has it.
func send(c *fiber.Ctx, f *file, cache string) error {
	content, encoding, err := f.encode(c.Get(fiber.HeaderAcceptEncoding))
	if err != nil {
		return err
	}
	setSecurity(c)
	c.Vary(fiber.HeaderAcceptEncoding)
	c.Set(fiber.HeaderCacheControl, cache)
	tag := `"` + strings.TrimSuffix(f.etag+"-"+encoding, "-") + `"`
	c.Set(fiber.HeaderETag, tag)
	if strings.Contains(c.Get(fiber.HeaderIfNoneMatch), tag) {
		return web.Empty(c, fiber.StatusNotModified)
	}
	c.Set(fiber.HeaderContentType, f.contentType)
	if encoding != "" {
		c.Set(fiber.HeaderContentEncoding, encoding)
	}
	c.Context().SetBody(content)
	return nil
}

// setSecurity sets what browsers may do with the pages. Other origins read nothing of
// them, unlike other public paths.
func setSecurity(c *fiber.Ctx) {
	c.Response().Header.Del(fiber.HeaderAccessControlAllowOrigin)
	c.Set(fiber.HeaderContentSecurityPolicy, policy)
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	c.Set("Cross-Origin-Opener-Policy", "same-origin")
	c.Set("Cross-Origin-Resource-Policy", "same-origin")
	c.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

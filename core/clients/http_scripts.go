package clients

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/clients/scripts"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
)

// The time that browsers and caches keep a script. A path with a full version
// always has the same content; other paths change with the next installation.
const (
	keepForEver    = "public, max-age=31536000, immutable"
	keepFiveMinute = "public, max-age=300"
)

var (
	errNoVersion = fault.New(fault.NotFound, "library_not_installed", "This version of posthog-js is not installed on the server.")
	errNoScript  = fault.New(fault.NotFound, "script_not_found", "The installed version of posthog-js has no such script.")
)

// missingLibrary is the main script while no version is installed. Pages go on:
// the snippet queues what they send.
const missingLibrary = `(function(){if(window.console&&!window.__guidonNoLibrary){window.__guidonNoLibrary=1;` +
	`console.warn("Guidon: the browser library is not installed on this server, so nothing is captured. ` +
	`An operator installs it with: guidon clients install")}})();` + "\n"

// newest serves a script of the newest version, or of the newest with the major
// version in v: the script that loads another one states its own version there.
func (h *HTTP) newest(c *fiber.Ctx) error {
	name := web.Param(c, "file")
	wanted := c.Query("v")
	version, ok := h.library.Exact(wanted)
	if !ok {
		if major, _, dotted := strings.Cut(wanted, "."); dotted {
			version, ok = h.library.Newest(major)
		}
	}
	if !ok {
		version, ok = h.library.Newest("")
	}
	if !ok {
		return h.missing(c, name)
	}
	return h.send(c, version, name, keepFiveMinute)
}

// ofVersion serves a script of a full version (1.449.2), or of the newest with a
// prefix of one (1, 1.449). It never serves another version than the path names:
// the library then asks for the script without a version.
func (h *HTTP) ofVersion(c *fiber.Ctx) error {
	wanted, name := web.Param(c, "version"), web.Param(c, "file")
	if version, ok := h.library.Exact(wanted); ok {
		return h.send(c, version, name, keepForEver)
	}
	version, ok := h.library.Newest(wanted)
	if !ok && isPrefix(wanted) {
		return h.missing(c, name)
	}
	if !ok {
		return errNoVersion
	}
	return h.send(c, version, name, keepFiveMinute)
}

// isPrefix reports whether a version names a range, as in /static/1/array.js.
func isPrefix(version string) bool {
	return version != "" && strings.Count(version, ".") < 2 && strings.Trim(version, "0123456789.") == ""
}

// withConfig serves the main script behind the configuration of the project, which
// saves a page one request.
func (h *HTTP) withConfig(c *fiber.Ctx) error {
	token := web.Param(c, "token")
	project, err := h.router.ProjectOf(c, token, c.Query("project_id"))
	if err != nil {
		return err
	}
	version, ok := h.library.Newest("")
	if !ok {
		return h.missing(c, scripts.Main)
	}
	file, err := h.library.File(version, scripts.Main)
	if err != nil {
		return notFound(err)
	}
	var config []byte
	if h.config != nil {
		config = h.config.ConfigScript(project, token)
	}
	c.Set(fiber.HeaderCacheControl, "no-cache")
	c.Response().Header.SetContentType(scripts.ContentType)
	c.Response().SetBodyRaw(append(append(config, '\n'), file.Content...))
	return nil
}

// missing answers while no version is installed.
func (h *HTTP) missing(c *fiber.Ctx, name string) error {
	if !strings.HasPrefix(name, "array.") {
		return errNoVersion
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Response().Header.SetContentType(scripts.ContentType)
	c.Response().SetBodyString(missingLibrary)
	return nil
}

func (h *HTTP) send(c *fiber.Ctx, version, name, cache string) error {
	file, err := h.library.File(version, name)
	if err != nil {
		return notFound(err)
	}
	etag, content := file.ETag, file.Content
	c.Response().Header.Add(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	if len(file.Gzip) > 0 && strings.Contains(c.Get(fiber.HeaderAcceptEncoding), "gzip") {
		etag, content = file.GzipETag, file.Gzip
		c.Set(fiber.HeaderContentEncoding, "gzip")
	}
	c.Set(fiber.HeaderETag, etag)
	c.Set(fiber.HeaderCacheControl, cache)
	if strings.Contains(c.Get(fiber.HeaderIfNoneMatch), etag) {
		c.Response().Header.Del(fiber.HeaderContentEncoding)
		return web.Empty(c, fiber.StatusNotModified)
	}
	c.Response().Header.SetContentType(scripts.ContentType)
	c.Response().SetBodyRaw(content)
	return nil
}

func notFound(err error) error {
	if scripts.IsNotFound(err) {
		return errNoScript
	}
	return err
}

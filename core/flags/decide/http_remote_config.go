package decide

import (
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/web"
)

// prepareConfig encodes the parts of an answer that describe the server. Clients
// learn from them how to send events and which features are available.
func (h *HTTP) prepareConfig(cfg Config) {
	h.head = []byte(`"config":{"enable_collect_everything":` + strconv.FormatBool(cfg.EnableCollectEverything) +
		`},"editorParams":{},"toolbarParams":{},"isAuthenticated":false,"supportedCompression":["gzip","gzip-js","lz64"],`)
	const features = `"sessionRecording":false,"siteApps":[],"capturePerformance":false,"autocapture_opt_out":false,` +
		`"autocaptureExceptions":false,"heatmaps":false,`
	h.tail = []byte(features + `"surveys":false,`)
	// The remote config has no surveys: a client that reads false there loads the
	// script of surveys on each page view. It loads none without the member.
	h.remote = []byte(features + `"captureDeadClicks":false,"analytics":{"endpoint":"/i/v0/e/"},"elementsChainAsString":true,` +
		`"defaultIdentifiedOnly":true,`)
}

// config answers the remote config of a browser client.
func (h *HTTP) config(c *fiber.Ctx) error {
	project, token, err := h.configProject(c)
	if err != nil {
		return err
	}
	c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	c.Response().SetBodyRaw(h.remoteConfig(project, token))
	return nil
}

// configScript answers the same as a script that browser clients load.
func (h *HTTP) configScript(c *fiber.Ctx) error {
	project, token, err := h.configProject(c)
	if err != nil {
		return err
	}
	c.Response().Header.SetContentType("application/javascript")
	c.Response().SetBodyRaw(h.ConfigScript(project, token))
	return nil
}

// ConfigScript returns the script that gives browser clients the remote config of
// a project. It is safe for concurrent use.
func (h *HTTP) ConfigScript(project auth.Project, token string) []byte {
	const registry = "window._POSTHOG_REMOTE_CONFIG"
	out := []byte("(function(){" + registry + "=" + registry + "||{};" + registry + "[")
	out = jsontext.AppendString(out, token)
	return append(append(append(out, "]={config:"...), h.remoteConfig(project, token)...), ",siteApps:[]}})();"...)
}

// configProject returns the project of the key in the path.
func (h *HTTP) configProject(c *fiber.Ctx) (auth.Project, string, error) {
	token := web.Param(c, "token")
	project, err := h.router.ProjectOf(c, token, c.Query("project_id"))
	c.Set(fiber.HeaderCacheControl, "no-cache")
	return project, token, err
}

func (h *HTTP) remoteConfig(project auth.Project, token string) []byte {
	out := jsontext.AppendString([]byte(`{"token":`), token)
	out = append(out, `,"hasFeatureFlags":`...)
	out = strconv.AppendBool(out, h.decider.snapshots.Set(project.ID).HasActive())
	out = append(append(append(out, ','), h.head...), h.remote...)
	out[len(out)-1] = '}'
	return out
}

package clients

import (
	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/web"
)

// emptyAnswer is the answer to a path of a product that Guidon does not have. No
// credential is read, and a body is received and dropped.
type emptyAnswer struct {
	method, path string
	status       int
	body         string
}

// emptyAnswers are the answers that client libraries take without a retry: an
// empty list under the name that they read, or success for what they post.
var emptyAnswers = [...]emptyAnswer{
	{fiber.MethodGet, "/api/surveys", 200, `{"surveys":[],"survey_config":null}`},
	{fiber.MethodGet, "/api/web_experiments", 200, `{"experiments":[]}`},
	{fiber.MethodGet, "/api/product_tours", 200, `{"product_tours":[]}`},
	{fiber.MethodPost, "/api/push_subscriptions", 200, `{"status":1}`},
	{fiber.MethodPost, "/s", 200, `{"status":1}`}, // recordings
	{fiber.MethodPost, "/report", 204, ``},        // reports of a content security policy
	{fiber.MethodGet, "/_health", 200, `ok`},      // load balancers
	{fiber.MethodGet, "/_preflight", 200, `{"db":true,"initiated":true,"cloud":false,"demo":false}`},
}

func (e emptyAnswer) answer(c *fiber.Ctx) error {
	if e.body == "" {
		return web.Empty(c, e.status)
	}
	c.Status(e.status)
	c.Response().SetBodyString(e.body)
	if e.body[0] == '{' {
		c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
	} else {
		c.Response().Header.SetContentType(fiber.MIMETextPlainCharsetUTF8)
	}
	return nil
}

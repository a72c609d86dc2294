package decide

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// Prefixes and parts of the User-Agent of clients.
var (
	browserParts  = []string{"Mozilla/", "Chrome/", "Safari/", "Firefox/", "Edge/"}
	serverAgents  = []string{"posthog-python/", "posthog-ruby/", "posthog-php/", "posthog-java/", "posthog-server/", "posthog-go/", "posthog-node/", "posthog-dotnet/", "posthog-elixir/", "posthog-rs/", "posthog-rust/"}
	serverParts   = []string{"python-requests/", "curl/"}
	clientAgents  = []string{"posthog-android/", "posthog-ios/", "posthog-react-native/", "posthog-flutter/"}
	clientHeaders = []string{fiber.HeaderOrigin, fiber.HeaderReferer, "Sec-Fetch-Mode", "Sec-Fetch-Site"}
)

// surveyPrefix starts the keys of the flags that target surveys.
const surveyPrefix = "survey-targeting-"

// RuntimeOf returns the runtime of the client of a request: the given one, else the
// one of its User-Agent, else ClientRuntime for a request with headers that only
// browsers send, else UnknownRuntime.
func RuntimeOf(c *fiber.Ctx, given string) eval.Runtime {
	if given != "" {
		r, _ := eval.ParseRuntime(given)
		return r
	}
	agent := c.Get(fiber.HeaderUserAgent)
	switch {
	case containsAny(agent, browserParts), startsWithAny(agent, clientAgents):
		return eval.ClientRuntime
	case startsWithAny(agent, serverAgents), containsAny(agent, serverParts):
		return eval.ServerRuntime
	}
	for _, name := range clientHeaders {
		if len(c.Request().Header.Peek(name)) > 0 {
			return eval.ClientRuntime
		}
	}
	return eval.UnknownRuntime
}

func containsAny(s string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

func startsWithAny(s string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// limit leaves out the flags that are not for the client of the request.
func (h *HTTP) limit(c *fiber.Ctx, k *call, e *eval.Evaluation) {
	var s eval.Scope
	if k.request.surveysOnly || isTruthy(c.Query("only_evaluate_survey_feature_flags")) {
		s.Prefix = surveyPrefix
	}
	if e.IsScoped() {
		s.Runtime, s.Contexts = RuntimeOf(c, k.request.runtime), k.request.contexts()
	}
	e.Limit(s)
}

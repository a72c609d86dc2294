package web

import (
	"cmp"
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/credential"
	"github.com/guidonhq/guidon/core/web/envelope"
)

const (
	current         = "@current"
	codeInvalidKey  = "invalid_api_key"
	codeInvalidUser = "invalid_personal_api_key"
)

// ErrHiddenProject is in the chain of the error of ProjectOf if the personal
// key is valid but may not see the requested project.
var ErrHiddenProject = errors.New("the personal key may not see this project")

// Token returns the project key of a public request, or the personal key in its
// place: from the JSON body (env), the form, the query, and last an
// Authorization: Bearer header. It fails with Unauthenticated without a key.
func Token(c *fiber.Ctx, p *Payload, env *envelope.Envelope) (string, error) {
	token := env.Token
	if token == "" {
		token = TokenFromRequest(c, p)
	}
	if token == "" {
		return "", fault.New(fault.Unauthenticated, codeInvalidKey, "API key not provided. Send the key of your project as api_key.")
	}
	return token, nil
}

// TokenFromRequest returns the key outside of the JSON: from the form, the query
// or the Authorization header; "" without one.
func TokenFromRequest(c *fiber.Ctx, p *Payload) string {
	for _, name := range [...]string{"api_key", "token"} {
		if s := p.Form(name); s != "" {
			return s
		}
	}
	for _, name := range [...]string{"token", "api_key"} {
		if s := p.Query(name); s != "" {
			return s
		}
	}
	s, _ := credential.Bearer(c.Request())
	return s
}

func badKey(shape apikey.Shape) error {
	return fault.New(fault.Unauthenticated, codeInvalidKey, "Provided API key is not valid: "+string(shape))
}

// ProjectID returns the project_id that accompanies a personal key on a public
// path: from the query, the form, or the JSON body (env); "" without one.
func ProjectID(p *Payload, env *envelope.Envelope) string {
	return cmp.Or(p.Query("project_id"), p.Form("project_id"), env.ProjectID)
}

package web

import (
	"bytes"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/body"
)

const personalField = "personal_api_key"

// enter takes a management request through the gate and hands it to h: the
// key first, then the project, then the scope.
func (g *Router) enter(c *fiber.Ctx, r *route, h func(c *Call) error) error {
	ctx, cancel := g.deadline()
	defer cancel()
	c.SetUserContext(ctx)
	who, err := g.principal(c)
	if err != nil {
		return err
	}
	if err := g.manage.take(who.KeyID); err != nil {
		return err
	}
	call := Call{Ctx: c, Principal: who, gate: g}
	if id := Param(c, "project_id"); id != "" {
		if call.Project, err = g.projectNamed(c, who, id); err != nil {
			return err
		}
		stateOf(c).project = call.Project.ID
	}
	if r.scope != "" && !who.HasScope(r.scope) {
		return fault.Newf(fault.Forbidden, "permission_denied", "API key missing required scope '%s'", r.scope)
	}
	if err := plainQuery(c); err != nil {
		return err
	}
	return h(&call)
}

// plainQuery refuses NUL in the query: no store can look for it.
func plainQuery(c *fiber.Ctx) error {
	if !bytes.Contains(c.Request().URI().QueryString(), []byte("%00")) {
		return nil
	}
	for name, value := range c.Request().URI().QueryArgs().All() {
		if bytes.IndexByte(value, 0) >= 0 || bytes.IndexByte(name, 0) >= 0 {
			attr := strings.ReplaceAll(string(name), "\x00", "")
			return fault.Field(attr, "null_characters_not_allowed", "Null characters are not allowed.")
		}
	}
	return nil
}

// principal finds the personal key and who holds it. The first place that has
// a key decides: the Authorization header, the body, the query.
func (g *Router) principal(c *fiber.Ctx) (*auth.Principal, error) {
	key, place := personalKey(c)
	if place == "" {
		return nil, fault.New(fault.Unauthenticated, "not_authenticated", "Authentication credentials were not provided.")
	}
	who, err := g.auth.PrincipalByKey(c.UserContext(), strings.Clone(key))
	if fault.Is(err, fault.Unauthenticated) || (err == nil && who == nil) {
		return nil, fault.Newf(fault.Unauthenticated, codeInvalidUser, "Personal API key found in request %s is invalid.", place).Because(err)
	}
	return who, err
}

// personalKey returns the key and the name of the place it was found in,
// which is empty when there is none.
func personalKey(c *fiber.Ctx) (key, place string) {
	if key, ok := bearer(c); ok {
		return key, "Authorization header"
	}
	if key := personalKeyInBody(c); key != "" {
		return key, "body"
	}
	if key := c.Query(personalField); key != "" {
		return strings.TrimSpace(key), "query string"
	}
	return "", ""
}

// bearer returns the credential of an Authorization: Bearer header.
func bearer(c *fiber.Ctx) (string, bool) {
	h := c.Request().Header.PeekBytes(headerAuthorization)
	if len(h) < 7 || !strings.EqualFold(unsafeString(h[:7]), "bearer ") {
		return "", false
	}
	key := strings.TrimSpace(unsafeString(h[7:]))
	return key, key != ""
}

// projectNamed resolves what a path calls a project. For @current the key of
// a project in the query parameter token says which one is meant.
func (g *Router) projectNamed(c *fiber.Ctx, who *auth.Principal, name string) (auth.Project, error) {
	if name == current {
		if token := c.Query("token"); token != "" {
			return g.projectByToken(c, who, token)
		}
	} else if !isNumber(name) {
		return auth.Project{}, fault.New(fault.NotFound, "not_found", "Project not found.")
	}
	p, err := g.auth.ProjectFor(c.UserContext(), who, name)
	if fault.Is(err, fault.NotFound) {
		return p, fault.New(fault.NotFound, "not_found", "Project not found.").Because(err)
	}
	return p, err
}

func (g *Router) projectByToken(c *fiber.Ctx, who *auth.Principal, token string) (auth.Project, error) {
	key, shape := auth.CheckKey(token)
	if shape != "" {
		return auth.Project{}, badKey(shape)
	}
	p, err := g.auth.ProjectByKey(c.UserContext(), key)
	if err != nil {
		return p, err
	}
	return g.projectNamed(c, who, itoa(p.ID))
}

// personalKeyInBody looks for the field personal_api_key in a body, when there
// is one that can be read; one that cannot is the business of the handler.
func personalKeyInBody(c *fiber.Ctx) string {
	if len(c.Request().Body()) == 0 || !bytes.Contains(c.Request().Body(), []byte(personalField)) {
		return ""
	}
	kind := c.Request().Header.ContentType()
	if body.IsFormType(kind) && !body.StartsJSON(c.Request().Body()) {
		return strings.TrimSpace(string(c.Request().PostArgs().Peek(personalField)))
	}
	if m, err := c.MultipartForm(); err == nil {
		if values := m.Value[personalField]; len(values) > 0 {
			return strings.TrimSpace(values[len(values)-1])
		}
		return ""
	}
	raw := c.Request().Body()
	if !body.StartsJSON(raw) || body.CheckJSON(raw, body.MaxDepth) != "" {
		return ""
	}
	f := newFields()
	if raw = bytes.TrimSpace(raw); raw[0] == '{' {
		f.addMembers(raw)
	}
	return f.String(personalField).Value
}

package web

import (
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/valyala/fastjson"
)

const (
	current         = "@current"
	codeInvalidKey  = "invalid_api_key"
	codeInvalidUser = "invalid_personal_api_key"
)

// ErrHiddenProject is in the chain of the error of ProjectOf when the
// personal key is good but may not see the project that was asked for.
var ErrHiddenProject = errors.New("the personal key may not see this project")

// keyNames is where a key may stand in an object, in the order of looking.
var keyNames = [...]string{"$token", "token", "api_key"}

// LastMember returns the value of name in the object v: the last one, when the name
// is there more than once. It is nil when v is no object or has no such name.
func LastMember(v *fastjson.Value, name string) *fastjson.Value {
	if v == nil || v.Type() != fastjson.TypeObject {
		return nil
	}
	o, err := v.Object()
	if err != nil {
		return nil
	}
	var found *fastjson.Value
	o.Visit(func(key []byte, v *fastjson.Value) {
		if string(key) == name {
			found = v
		}
	})
	return found
}

// Token finds the project key (or the personal key in its place) of a public
// request: in the envelope, in the events, as their property token, in the
// form, in the query, and last as an Authorization: Bearer header. It fails
// with Unauthenticated when there is none, and when the events of one request
// carry different ones. body may be nil.
func Token(c *fiber.Ctx, p *Payload, body *fastjson.Value) (string, error) {
	token, err := tokenIn(body)
	if err != nil {
		return "", err
	}
	if token == "" {
		token = TokenFromRequest(c, p)
	}
	if token == "" {
		return "", fault.New(fault.Unauthenticated, codeInvalidKey, "API key not provided. Send the key of your project as api_key.")
	}
	return token, nil
}

// TokenFromRequest is the part of Token that looks beside the JSON: form, query,
// Authorization header. It returns the empty string when there is none.
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
	s, _ := bearer(c)
	return s
}

// tokenIn looks in the JSON: an envelope speaks for its batch, and the events
// of a list have to agree.
func tokenIn(body *fastjson.Value) (string, error) {
	if body == nil {
		return "", nil
	}
	list := body
	if body.Type() == fastjson.TypeObject {
		own, err := tokenOf(body)
		if own != "" || err != nil {
			return own, err
		}
		if list = LastMember(body, "batch"); list == nil {
			return "", nil
		}
	}
	if list.Type() != fastjson.TypeArray {
		return "", nil
	}
	return tokenOfAll(list.GetArray())
}

func tokenOfAll(events []*fastjson.Value) (string, error) {
	token := ""
	for _, e := range events {
		t, err := tokenOf(e)
		if err != nil {
			return "", err
		}
		if t != "" && token != "" && strings.TrimSpace(t) != strings.TrimSpace(token) {
			return "", fault.New(fault.Unauthenticated, codeInvalidKey, "All events of one request must have the same API key.")
		}
		if token == "" {
			token = t
		}
	}
	return token, nil
}

func tokenOf(event *fastjson.Value) (string, error) {
	for _, name := range keyNames {
		if t, err := text(LastMember(event, name)); t != "" || err != nil {
			return t, err
		}
	}
	return text(LastMember(LastMember(event, "properties"), "token"))
}

func text(v *fastjson.Value) (string, error) {
	if v == nil || v.Type() == fastjson.TypeNull {
		return "", nil
	}
	if v.Type() != fastjson.TypeString {
		return "", badKey("not_string")
	}
	return unsafeString(v.GetStringBytes()), nil
}

func badKey(shape auth.Shape) error {
	return fault.New(fault.Unauthenticated, codeInvalidKey, "Provided API key is not valid: "+string(shape))
}

// ProjectID finds the project_id that goes with a personal key on a public
// path: in the query, the form, or the JSON (of a list, the first item). It
// returns the empty string when there is none. body may be nil.
func ProjectID(p *Payload, body *fastjson.Value) string {
	if s := p.Query("project_id"); s != "" {
		return s
	}
	if s := p.Form("project_id"); s != "" {
		return s
	}
	if body != nil && body.Type() == fastjson.TypeArray {
		if body = body.Get("0"); body == nil {
			return ""
		}
	}
	switch v := LastMember(body, "project_id"); {
	case v == nil || v.Type() == fastjson.TypeNull:
		return ""
	case v.Type() == fastjson.TypeString:
		return unsafeString(v.GetStringBytes())
	default:
		return v.String()
	}
}

// Authenticate is Token, ProjectID and ProjectOf in one.
func (g *Router) Authenticate(c *fiber.Ctx, p *Payload, body *fastjson.Value) (auth.Project, error) {
	token, err := Token(c, p, body)
	if err != nil {
		return auth.Project{}, err
	}
	return g.ProjectOf(c, token, ProjectID(p, body))
}

// ProjectOf returns the project that a public request is for: that of the
// project key token or, when token is a personal key, the one that projectID
// names. The request is then counted against the rate of the project.
//
// It fails with Unauthenticated invalid_api_key when there is no such key;
// with Invalid invalid_project (attr project_id) when a good personal key
// comes without a project_id, or with one that is no number; with
// Unauthenticated invalid_personal_api_key when the personal key is not good
// or may not see the project (then ErrHiddenProject is in the chain); and
// with Throttled.
func (g *Router) ProjectOf(c *fiber.Ctx, token, projectID string) (auth.Project, error) {
	p, err := g.projectOf(c, token, projectID)
	if err != nil {
		return auth.Project{}, err
	}
	stateOf(c).project = p.ID
	return p, g.public.take(p.ID)
}

func (g *Router) projectOf(c *fiber.Ctx, token, projectID string) (auth.Project, error) {
	key, shape := auth.CheckKey(token)
	switch shape {
	case "":
	case auth.ShapePersonal:
		return g.projectByPerson(c, key, projectID)
	default:
		return auth.Project{}, badKey(shape)
	}
	p, err := g.auth.ProjectByKey(c.UserContext(), key)
	if projectID != "" && fault.Is(err, fault.Unauthenticated) {
		return g.projectByPerson(c, key, projectID)
	}
	return p, err
}

func (g *Router) projectByPerson(c *fiber.Ctx, key, projectID string) (auth.Project, error) {
	invalid := fault.Field("project_id", "invalid_project", "Invalid Project ID.")
	if projectID != "" && !isNumber(projectID) {
		return auth.Project{}, invalid
	}
	who, err := g.auth.PrincipalByKey(c.UserContext(), strings.Clone(key))
	switch {
	case fault.Is(err, fault.Unauthenticated):
		return auth.Project{}, fault.New(fault.Unauthenticated, codeInvalidUser, "Invalid Personal API key.").Because(err)
	case err != nil:
		return auth.Project{}, err
	case projectID == "":
		return auth.Project{}, invalid
	}
	p, err := g.auth.ProjectFor(c.UserContext(), who, strings.Clone(projectID))
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) {
		return auth.Project{}, fault.New(fault.Unauthenticated, codeInvalidUser, "No project found for this personal API key.").Because(errors.Join(ErrHiddenProject, err))
	}
	return p, err
}

// isNumber accepts what a project number looks like, and nothing longer than
// fits.
func isNumber(s string) bool {
	if len(s) == 0 || len(s) > 18 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

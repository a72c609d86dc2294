package web

import (
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/valyala/fastjson"
)

const (
	current         = "@current"
	codeInvalidKey  = "invalid_api_key"
	codeInvalidUser = "invalid_personal_api_key"
)

// ErrHiddenProject is in the chain of the error of ProjectOf if the personal
// key is valid but may not see the requested project.
var ErrHiddenProject = errors.New("the personal key may not see this project")

// keyNames are the members of an object that may hold a key, in order of
// precedence.
var keyNames = [...]string{"$token", "token", "api_key"}

// LastMember returns the last value of name in the object v, as for a repeated
// name the last value counts; nil if v is not an object or has no such name.
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

// Token returns the project key of a public request, or the personal key in its
// place: from the envelope, the events, their property token, the form, the
// query, and last an Authorization: Bearer header. It fails with
// Unauthenticated without a key, and if the events of one request have
// different ones. body may be nil.
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
	s, _ := bearerToken(c)
	return s
}

// tokenIn returns the key inside the JSON. The key of an envelope counts for
// its batch; the events of a list must agree.
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
		if t, err := stringOf(LastMember(event, name)); t != "" || err != nil {
			return t, err
		}
	}
	return stringOf(LastMember(LastMember(event, "properties"), "token"))
}

func stringOf(v *fastjson.Value) (string, error) {
	if v == nil || v.Type() == fastjson.TypeNull {
		return "", nil
	}
	if v.Type() != fastjson.TypeString {
		return "", badKey("not_string")
	}
	return unsafeString(v.GetStringBytes()), nil
}

func badKey(shape apikey.Shape) error {
	return fault.New(fault.Unauthenticated, codeInvalidKey, "Provided API key is not valid: "+string(shape))
}

// ProjectID returns the project_id that accompanies a personal key on a public
// path: from the query, the form, or the JSON (of a list, the first element);
// "" without one. body may be nil.
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

package web

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web/fields"
)

// Types and rules of package fields, for handlers.
type (
	// Fields is the body of a management request.
	Fields = fields.Fields
	// Opt is an optional field.
	Opt[T any] = fields.Opt[T]
	// Rule is a condition of a getter of Fields.
	Rule = fields.Rule
)

// Required rejects a missing field.
func Required(r *fields.Rules) { fields.Required(r) }

// Nullable accepts null.
func Nullable(r *fields.Rules) { fields.Nullable(r) }

// Blank accepts an empty string.
func Blank(r *fields.Rules) { fields.Blank(r) }

// Untrimmed keeps the white space around a string.
func Untrimmed(r *fields.Rules) { fields.Untrimmed(r) }

// Max limits the characters of a string, the items of a list, or a number.
func Max(n int64) Rule { return fields.Max(n) }

// Min limits a number from below.
func Min(n int64) Rule { return fields.Min(n) }

// OneOf accepts only these strings.
func OneOf(choices ...string) Rule { return fields.OneOf(choices...) }

// Decode reads the body of a management request; see fields.Parse. Compressed
// bodies are accepted. The fields of a PATCH must contain a known one.
func Decode(c *fiber.Ctx, limits Limits) (*Fields, error) {
	limits.Memory, limits.Values = Memory(c), maxValues
	if err := limits.Memory.StartProcessing(); err != nil {
		return nil, err
	}
	defer limits.Memory.EndProcessing()
	raw, err := plainBody(c, limits)
	if err != nil {
		return nil, err
	}
	kind, _, _ := strings.Cut(string(c.Request().Header.ContentType()), ";")
	f, err := fields.Parse(raw, strings.ToLower(strings.TrimSpace(kind)), c.Request().Header.MultipartFormBoundary(), limits)
	if err == nil && c.Method() == fiber.MethodPatch {
		f.RequireKnown()
	}
	return f, err
}

// plainBody returns the body without its content encoding.
func plainBody(c *fiber.Ctx, limits Limits) ([]byte, error) {
	raw := c.Request().Body()
	encoding := strings.ToLower(string(c.Request().Header.Peek(fiber.HeaderContentEncoding)))
	if encoding == "" || encoding == "identity" {
		return raw, nil
	}
	out, err := stateOf(c).body.Inflate(raw, encoding, limits)
	if fault.Is(err, fault.Malformed) {
		return nil, fault.New(fault.Malformed, "parse_error", "JSON parse error - "+fault.From(err).Detail)
	}
	return out, err
}

package web

import (
	"encoding/json"
	"fmt"

	"github.com/gofiber/fiber/v2"
)

// JSON answers with v as JSON, with the status that has been set. Texts are
// not escaped for HTML.
func JSON(c *fiber.Ctx, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	c.Response().SetBodyRaw(body)
	c.Response().Header.SetContentTypeBytes(typeJSON)
	return nil
}

func encode(v any) ([]byte, error) {
	var out lineless
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return out, nil
}

// lineless collects what a json.Encoder writes, without the line feed that it
// puts at the end.
type lineless []byte

func (l *lineless) Write(p []byte) (int, error) {
	*l = append(*l, p...)
	if n := len(*l); n > 0 && (*l)[n-1] == '\n' {
		*l = (*l)[:n-1]
	}
	return len(p), nil
}

// Done answers 200 {"status":1}: what was sent has been taken.
func Done(c *fiber.Ctx) error {
	c.Response().SetBodyRaw(bodyDone)
	c.Response().Header.SetContentTypeBytes(typeJSON)
	c.Status(fiber.StatusOK)
	return nil
}

var (
	typeJSON = []byte(fiber.MIMEApplicationJSON)
	bodyDone = []byte(`{"status":1}`)
)

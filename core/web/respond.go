package web

import (
	"encoding/json"
	"fmt"

	"github.com/gofiber/fiber/v2"
)

// JSON answers with v as JSON and the status that was set. Strings are not
// escaped for HTML.
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
	var out trimNewlineWriter
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	return out, nil
}

// trimNewlineWriter collects the output of a json.Encoder without the line feed
// at its end.
type trimNewlineWriter []byte

func (l *trimNewlineWriter) Write(p []byte) (int, error) {
	*l = append(*l, p...)
	if n := len(*l); n > 0 && (*l)[n-1] == '\n' {
		*l = (*l)[:n-1]
	}
	return len(p), nil
}

// Done answers 200 {"status":1}: the request was accepted.
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

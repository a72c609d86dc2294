package otlp

import (
	"math"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/failure"
)

const typeProtobuf = "application/x-protobuf"

// form is the encoding of a request, which its answer has, too.
type form struct{ json bool }

func formOf(c *fiber.Ctx) form {
	return form{strings.Contains(strings.ToLower(c.Get(fiber.HeaderContentType)), "json")}
}

// answer writes a message.
func (f form) answer(c *fiber.Ctx, m proto.Message) error {
	if f.json {
		text, err := protojson.Marshal(m)
		c.Response().SetBodyRaw(text)
		c.Response().Header.SetContentType(fiber.MIMEApplicationJSON)
		return err
	}
	raw, err := proto.Marshal(m)
	c.Response().SetBodyRaw(raw)
	c.Response().Header.SetContentType(typeProtobuf)
	return err
}

// The codes of google.rpc.Status for the statuses of HTTP.
var statusCodes = map[int]uint64{400: 3, 401: 16, 403: 7, 404: 5, 413: 8, 415: 3, 429: 8, 503: 14}

// fail answers an error as google.rpc.Status, which exporters expect. An internal
// error is left to the server, which logs it; exporters do not repeat a 500.
func (f form) fail(c *fiber.Ctx, err error) error {
	if fault.From(err) == nil {
		return err
	}
	a := failure.AnswerOf(err, true)
	if a.Status == fiber.StatusInternalServerError {
		return err
	}
	if a.RetryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(a.RetryAfter.Seconds()))))
	}
	c.Status(a.Status)
	code, message := statusCodes[a.Status], a.Code+": "+a.Detail
	if f.json {
		return web.JSON(c, map[string]any{"code": code, "message": message})
	}
	out := protowire.AppendTag(nil, 1, protowire.VarintType)
	out = protowire.AppendVarint(out, code)
	out = protowire.AppendTag(out, 2, protowire.BytesType)
	c.Response().SetBodyRaw(protowire.AppendString(out, message))
	c.Response().Header.SetContentType(typeProtobuf)
	return nil
}

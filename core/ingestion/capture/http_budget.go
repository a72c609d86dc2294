package capture

import (
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/budget"
	"github.com/guidonhq/guidon/core/web/envelope"
)

var (
	errBusy         = fault.New(fault.Unavailable, "ingestion_saturated", "Too much is being taken in at once.").After(time.Second)
	errTooManyItems = fault.New(fault.TooLarge, "too_many_events", "Request too large: it has too many events. Send it in parts.")
)

// resultBytes is about the memory of the result of an item.
const resultBytes = 256

// intake is a decoded body, and what its request holds of the budget of capture.
type intake struct {
	payload *web.Payload
	env     envelope.Envelope
	envErr  error // of env: not JSON, no known shape, or no valid key
	held    budget.Account
}

// read decodes the body of a request and finds its items. The memory is taken
// twice: from the budget of the server while the body is received and inflated,
// and from the budget of capture afterwards, which bounds what waits for the
// journal. release must be called in any case. The request occupies a slot for
// large requests afterwards, until appendRecord or the answer.
func (h *HTTP) read(c *fiber.Ctx, in *intake) (err error) {
	in.held.Open(h.budget)
	limits := h.router.Limits()
	limits.Unchecked = true // envelope.Read validates, and the decoder sanitizes
	if in.payload, err = web.Body(c, limits); err != nil {
		return saturated(err)
	}
	if err := web.Memory(c).StartProcessing(); err != nil {
		return saturated(err)
	}
	in.env, in.envErr = envelope.Read(in.payload.JSON)
	if h.maxItems > 0 && in.env.Count > h.maxItems {
		return errTooManyItems
	}
	size := len(in.env.Items) // the record is a copy of them
	if wantsResults(c) || strings.HasPrefix(c.Path(), "/i/v1/") {
		size += resultBytes * in.env.Count
	}
	if err := web.Memory(c).Take(size); err != nil {
		return saturated(err)
	}
	return saturated(in.held.Take(len(c.Request().Body()) + len(in.env.Items)))
}

// saturated gives a budget that is used up the code of capture.
func saturated(err error) error {
	if f := fault.From(err); f != nil && f.Code == budget.CodeSaturated {
		return errBusy
	}
	return err
}

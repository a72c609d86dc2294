package ingestion

import (
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
)

// budget bounds the memory of requests that are on their way to the journal,
// so that a storm of them is answered with 503 and not with the end of the
// process. The zero value bounds nothing.
type budget struct {
	most int64
	held atomic.Int64
}

var errBusy = fault.New(fault.Unavailable, "ingestion_saturated", "Too much is being taken in at once.").After(time.Second)

// What a request is thought to take for each byte on the wire: the body and its
// copy for the journal, and what comes out of a compressed one.
const (
	plainWeight   = 2
	wrappedWeight = 10
)

// enter takes the memory of a request of c, to be given to leave when it is
// answered. A request finds room when nobody else is there, however large it is.
func (b *budget) enter(c *fiber.Ctx) (n int64, err error) {
	if b.most <= 0 {
		return 0, nil
	}
	body := c.Request().Body()
	n = plainWeight
	if len(body) > 0 && body[0] != '{' && body[0] != '[' {
		n = wrappedWeight
	}
	n *= int64(len(body))
	if held := b.held.Add(n); held > b.most && held > n {
		b.held.Add(-n)
		return 0, errBusy
	}
	return n, nil
}

func (b *budget) leave(n int64) { b.held.Add(-n) }

package capture

import (
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
)

// budget bounds the memory of requests on their way to the journal: a burst of
// requests gets 503 instead of exhausting the process. The zero value is no
// bound.
type budget struct {
	limit    int64
	reserved atomic.Int64
}

var errBusy = fault.New(fault.Unavailable, "ingestion_saturated", "Too much is being taken in at once.").After(time.Second)

// The memory that a request takes for each byte on the wire: the body and its
// copy for the journal; for a compressed body also the decompressed one.
const (
	plainWeight      = 2
	compressedWeight = 10
)

// reserve reserves memory for the request of c and returns its size, for release
// after the answer. A request of any size succeeds while it is the only one.
func (b *budget) reserve(c *fiber.Ctx) (n int64, err error) {
	if b.limit <= 0 {
		return 0, nil
	}
	body := c.Request().Body()
	n = plainWeight
	if len(body) > 0 && body[0] != '{' && body[0] != '[' {
		n = compressedWeight
	}
	n *= int64(len(body))
	if reserved := b.reserved.Add(n); reserved > b.limit && reserved > n {
		b.reserved.Add(-n)
		return 0, errBusy
	}
	return n, nil
}

func (b *budget) release(n int64) { b.reserved.Add(-n) }

package capture

import (
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/ingestion/event"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/budget"
)

// Batch holds events of another protocol as capture receives them.
type Batch struct {
	// Items is a JSON array of Count events. They may hold personal keys, which are
	// removed.
	Items []byte
	Count int
	// ClientIP keeps the address of the client, if the project does, and its location.
	ClientIP bool
}

// Keep appends a batch to the journal and returns when it is on disk. It fails with
// TooLarge for too many events, with Unavailable, and with an error of IsOverQuota
// when the events are dropped because the project is over quota.
func (h *HTTP) Keep(c *fiber.Ctx, project auth.Project, b Batch) error {
	err := h.keep(c, project, b)
	if err != nil && !IsOverQuota(err) {
		h.metrics.refuse(fault.CodeOf(err), b.Count)
	}
	return err
}

func (h *HTTP) keep(c *fiber.Ctx, project auth.Project, b Batch) error {
	if b.Count == 0 {
		return nil
	}
	if h.maxItems > 0 && b.Count > h.maxItems {
		return errTooManyItems
	}
	var held budget.Account
	held.Open(h.budget)
	defer held.Release()
	if err := held.Take(len(b.Items)); err != nil {
		return saturated(err)
	}
	rec := event.Record{
		ReceivedAt: time.Now(), ProjectID: project.ID, RequestID: web.NewRequestID(), Anonymise: project.AnonymizeIPs,
		Items: withoutSecrets(b.Items, ""),
	}
	if b.ClientIP {
		if err := h.setClient(c, &rec, project); err != nil {
			return err
		}
	}
	return h.appendRecord(c, &rec, b.Count)
}

// IsOverQuota reports whether an error means that events were dropped over quota.
func IsOverQuota(err error) bool { return errors.Is(err, errOverQuota) }

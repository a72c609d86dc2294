package accounts

import (
	"time"

	"github.com/guidonhq/guidon/core/web"
)

// keyEnd reads the end of a key; null is no end. The zero time of Go, which stands for
// no end elsewhere, is a time in the past.
func keyEnd(body *web.Fields) web.Opt[time.Time] {
	end := body.Time("expires_at", web.Nullable)
	if end.Set && !end.Null && end.Value.IsZero() {
		body.Fail("expires_at", "invalid_input", "A key must expire in the future.")
	}
	return end
}

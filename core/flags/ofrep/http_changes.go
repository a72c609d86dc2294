package ofrep

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/web"
)

// inactivityDelay is the time, in seconds, after which a page that is not visible
// closes its stream.
const inactivityDelay = "120"

// publicKeyPrefix is that of project keys. They may be part of a URL, others not.
const publicKeyPrefix = "phc_"

// appendStreams appends the event stream of the project, for a key that may be part
// of a URL. Clients resolve requestUri against the origin, by default the one that they
// use, so it has the prefix of a proxy.
func (h *HTTP) appendStreams(c *fiber.Ctx, dst []byte, key string) []byte {
	if h.changes == nil || !strings.HasPrefix(key, publicKeyPrefix) {
		return dst
	}
	origin, prefix := h.router.Origin(c)
	dst = append(dst, `,"eventStreams":[{"type":"sse","endpoint":{`...)
	if origin != "" {
		dst = append(appendText(append(dst, `"origin":`...), origin), ',')
	}
	dst = appendText(append(dst, `"requestUri":`...), prefix+h.changes.StreamPath(key))
	return append(dst, `},"inactivityDelaySec":`+inactivityDelay+`}]`...)
}

// awaitTime bounds the wait for flags of the revision that an event has named.
const awaitTime = time.Second

// await waits for the flags that an event of the stream has announced. They are
// already there unless another server has sent the event. Without them the answer
// has the flags in memory.
func (h *HTTP) await(c *fiber.Ctx, project int64) {
	tag, modified := c.Query("flagConfigEtag"), timeIn(c.Query("flagConfigLastModified"))
	revision, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(tag, "W/"), `"`), 10, 64)
	if err != nil || revision < 0 {
		revision = 0
	}
	if h.changes == nil || revision == 0 && modified.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), awaitTime)
	defer cancel()
	if err := h.changes.Await(ctx, project, revision, modified); err != nil {
		h.log.Warn("flags may be older than announced", zap.Int64("project_id", project), zap.String("request_id", web.RequestID(c)), zap.Error(err))
	}
}

// timeIn reads a time in Unix seconds or ISO 8601; zero for anything else.
func timeIn(text string) time.Time {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 && n < 1e11 {
		return time.Unix(int64(n), 0)
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t.Truncate(time.Second)
	}
	return time.Time{}
}

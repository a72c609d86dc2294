package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/host/settings"
)

// bodies collects the bodies of posts.
type bodies struct {
	mu  sync.Mutex
	all strings.Builder
}

func (b *bodies) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	raw, _ := io.ReadAll(req.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all.Write(raw)
}

// count returns how many of the persons early0 to early(n-1) are named.
func (b *bodies) count(n int) (found int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range n {
		if strings.Contains(b.all.String(), fmt.Sprintf("early%d.", i)) {
			found++
		}
	}
	return found
}

// TestEventsBeforeTheFirstProcessor accepts events on a server that does not process,
// before any other has run on the log. They reach the event store, the sink and the
// notifier of the server that comes later.
func TestEventsBeforeTheFirstProcessor(t *testing.T) {
	t.Parallel()
	for name, log := range map[string]string{"kafka": startBrokers(t), "postgres": "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eventsBeforeTheFirstProcessor(t, log)
		})
	}
}

func eventsBeforeTheFirstProcessor(t *testing.T, log string) {
	const early = 30
	delivered, notified := &bodies{}, &bodies{}
	sink, notifier := httptest.NewServer(delivered), httptest.NewServer(notified)
	t.Cleanup(sink.Close)
	t.Cleanup(notifier.Close)
	postgres := dbtest.PostgresURL(t)
	with := func(name string, roles ...string) func(*app.Config) {
		return func(c *app.Config) {
			onLog(log)(c)
			c.Database.URL, c.Cluster.Name, c.Roles = postgres, name, roles
			c.Notifications.Burst = early
			c.Plugins.Instances = []settings.Instance{
				{Name: "out", Kind: "sink", Use: "webhook", Config: map[string]any{"url": sink.URL, "format": "ndjson", "allow_hosts": []any{"127.0.0.1"}}},
				{Name: "hook", Kind: "notifier", Use: "webhook", Config: map[string]any{"url": notifier.URL, "allow_networks": []any{"127.0.0.0/8"}}},
			}
		}
	}
	edge := serve(t, with("edge", "capture", "decide", "manage"))
	edge.mustManage(t, http.MethodPost, "/api/projects/1/actions/",
		`{"name":"Paid","steps":[{"event":"paid"}],"post_to_chat":true,"chat_message_format":"[person] paid"}`)
	for i := range early {
		edge.capture(t, fmt.Sprintf(`{"event":"paid","distinct_id":"early%d."}`, i))
	}
	back := serveExisting(t, with("back", "process", "deliver"))
	back.until(t, "early events are stored", func() bool { all, _ := back.stored(t); return all == early })
	back.until(t, "early events are delivered", func() bool { return delivered.count(early) == early })
	back.until(t, "early events are notified", func() bool { return notified.count(early) == early })
}

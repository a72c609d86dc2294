package notifications_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/notifications"
	"github.com/guidonhq/guidon/core/web/webtest"
)

func TestNotifiersAreListedWithoutTheirConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		standard []string
		want     string
	}{
		{nil, `{"results":[{"name":"fast","available":true,"default":true},{"name":"team","available":true,"default":true}]}`},
		{[]string{"team"}, `{"results":[{"name":"fast","available":true,"default":false},{"name":"team","available":true,"default":true}]}`},
	} {
		p := open(t, dbtest.SQLite(t), func(cfg *notifications.Config, w *world) {
			cfg.Destinations = c.standard
			w.chats = []*chat{{name: "team"}, {name: "fast"}}
		})
		base := webtest.Serve(t, webtest.DefaultKeys(), notifications.NewHTTP(p.Service))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/api/projects/1/actions/notifiers/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer phx_test")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || string(body) != c.want {
			t.Errorf("%d %s, %v; want %s", res.StatusCode, body, err, c.want)
		}
	}
}

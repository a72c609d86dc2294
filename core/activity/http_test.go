package activity_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// logOf serves a log of a number of entries.
type logOf int

func (n logOf) Routes(g *web.Router) {
	g.Manage(http.MethodGet, "/api/log", "", func(c *web.Call) error {
		return activity.Answer(c, func(_ context.Context, limit, offset int) ([]activity.Entry, int, error) {
			return make([]activity.Entry, max(0, min(limit, int(n)-offset))), int(n), nil
		})
	})
}

func TestPagesPastTheEndLeadToTheLastOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		entries             int
		query, next, before string
	}{
		{25, "", "/api/log?limit=10&page=2", ""},
		{25, "?page=3", "", "/api/log?limit=10&page=2"},
		{25, "?page=999", "", "/api/log?limit=10&page=3"},
		{20, "?page=999", "", "/api/log?limit=10&page=2"},
		{0, "?page=999", "", "/api/log?limit=10&page=1"},
	} {
		base := webtest.Serve(t, webtest.DefaultKeys(), logOf(c.entries))
		page := fetchPage(t, base+"/api/log"+c.query)
		if got := linkOf(page.Next); got != absolute(base, c.next) {
			t.Errorf("%d entries, %q: next is %q", c.entries, c.query, got)
		}
		if got := linkOf(page.Previous); got != absolute(base, c.before) {
			t.Errorf("%d entries, %q: previous is %q", c.entries, c.query, got)
		}
	}
}

type links struct{ Next, Previous *string }

func fetchPage(t *testing.T, url string) (page links) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	req.Header.Set("Authorization", "Bearer phx_test")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(body, &page)
	}
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s (%v)", res.StatusCode, body, err)
	}
	return page
}

func linkOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func absolute(base, path string) string {
	if path == "" {
		return ""
	}
	return base + path
}

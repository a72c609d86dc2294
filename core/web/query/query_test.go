package query_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
	"github.com/guidonhq/guidon/core/web/webtest"
)

type routes func(*web.Router)

func (f routes) Routes(g *web.Router) { f(g) }

func TestIDs(t *testing.T) {
	t.Parallel()
	base := webtest.Serve(t, webtest.DefaultKeys(), routes(func(g *web.Router) {
		g.Manage("GET", "/api/ids/", "", func(c *web.Call) error {
			ids, err := query.IDs(c, "ids", 3)
			if err != nil {
				return err
			}
			return web.JSON(c.Ctx, fmt.Sprint(ids))
		})
	}))
	for text, want := range map[string]string{
		"": `"[]"`, "7": `"[7]"`, "3,+1,3": `"[3 1]"`, "1,2,3": `"[1 2 3]"`,
		"1,2,3,4": "Ensure this list has at most 3 ids.", "x": "Must be a comma-separated list of ids.", "0": "Must be a comma-separated list of ids.",
		"1,": "Must be a comma-separated list of ids.", "-1": "Must be a comma-separated list of ids.", "99999999999999999999": "Must be a comma-separated list of ids.",
	} {
		res, err := http.Get(base + "/api/ids/?personal_api_key=phx_test&ids=" + url.QueryEscape(text))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || !strings.Contains(string(answer), want) {
			t.Errorf("ids=%s: %d %s %v, want %s", text, res.StatusCode, answer, err, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	all := []int{1, 2, 3, 4, 5}
	for _, c := range []struct {
		limit, offset int
		want          string
	}{
		{2, 0, "[1 2]"}, {2, 4, "[5]"}, {2, 5, "[]"}, {100, 1, "[2 3 4 5]"}, {web.MaxPageSize, math.MaxInt32, "[]"},
	} {
		if got := fmt.Sprint(query.Cut(all, c.limit, c.offset)); got != c.want {
			t.Errorf("%d from %d: %s, want %s", c.limit, c.offset, got, c.want)
		}
	}
	if got := query.Cut([]int(nil), 1, 0); len(got) != 0 {
		t.Errorf("of no list: %v", got)
	}
}

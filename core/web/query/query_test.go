package query_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/query"
)

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

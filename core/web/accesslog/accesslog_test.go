package accesslog_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/web/accesslog"
)

func TestFloodOfFailuresIsThinned(t *testing.T) {
	t.Parallel()
	s := accesslog.NewSelector(accesslog.All, 1)
	const requests = 100_000
	logged := 0
	for i := range requests {
		if s.Selects(true, [...]int{401, 413, 429, 503}[i%4]) {
			logged++
		}
	}
	if logged < 100 || logged > requests/10 {
		t.Errorf("%d of %d failures are logged", logged, requests)
	}
	if n := s.Skipped(); int(n) != requests-logged {
		t.Errorf("%d skipped, want %d", n, requests-logged)
	}
	if n := s.Skipped(); n != 0 {
		t.Errorf("%d skipped again", n)
	}
	for range 1000 {
		if !s.Selects(true, 500) || !s.Selects(false, 403) || !s.Selects(true, 200) {
			t.Fatal("an error of the server, a management request or a success is not logged")
		}
	}
}

func TestSelects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		which  string
		public bool
		status int
		want   bool
	}{
		{accesslog.ServerErrors, true, 500, true}, {accesslog.ServerErrors, true, 503, true}, {accesslog.ServerErrors, true, 401, false},
		{accesslog.Errors, true, 401, true}, {accesslog.Errors, false, 200, false},
		{accesslog.Management, false, 200, true}, {accesslog.Management, true, 200, false}, {accesslog.Management, true, 400, true},
		{accesslog.All, true, 200, true},
	} {
		if got := accesslog.NewSelector(c.which, 1).Selects(c.public, c.status); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

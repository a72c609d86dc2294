package accesslog_test

import (
	"testing"

	"go.uber.org/zap/zapcore"

	"github.com/guidonhq/guidon/core/web/accesslog"
)

func TestFloodOfFailuresIsThinned(t *testing.T) {
	t.Parallel()
	s := accesslog.NewSelector(accesslog.All, 1)
	const requests = 100_000
	logged := 0
	for i := range requests {
		if s.Selects(accesslog.Public, [...]int{401, 413, 429, 503}[i%4]) {
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
		if !s.Selects(accesslog.Public, 500) || !s.Selects(accesslog.Write, 403) || !s.Selects(accesslog.Public, 200) {
			t.Fatal("an error of the server, a management request or a success is not logged")
		}
	}
}

func TestSelects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		which  string
		kind   accesslog.Kind
		status int
		want   bool
	}{
		{accesslog.ServerErrors, accesslog.Public, 500, true}, {accesslog.ServerErrors, accesslog.Public, 503, true}, {accesslog.ServerErrors, accesslog.Public, 401, false},
		{accesslog.Errors, accesslog.Public, 401, true}, {accesslog.Errors, accesslog.Write, 200, false},
		{accesslog.Management, accesslog.Write, 200, true}, {accesslog.Management, accesslog.Public, 200, false}, {accesslog.Management, accesslog.Public, 400, true},
		{accesslog.All, accesslog.Public, 200, true},
	} {
		if got := accesslog.NewSelector(c.which, 1).Selects(c.kind, c.status); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

func TestRequestsForOtherServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   string
		level  zapcore.Level
		kind   accesslog.Kind // of a POST that is not public
	}{
		{503, "role_missing", zapcore.WarnLevel, accesslog.Public},
		{503, "server_saturated", zapcore.WarnLevel, accesslog.Write},
		{503, "database_unavailable", zapcore.ErrorLevel, accesslog.Write},
		{500, "error", zapcore.ErrorLevel, accesslog.Write},
		{404, "not_found", zapcore.InfoLevel, accesslog.Write},
	} {
		if got := accesslog.Level(c.status, c.code); got != c.level {
			t.Errorf("%d %s: level %s, want %s", c.status, c.code, got, c.level)
		}
		if got := accesslog.KindOf("POST", c.code, false); got != c.kind {
			t.Errorf("%s: kind %d, want %d", c.code, got, c.kind)
		}
	}
}

package auth_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"go.uber.org/goleak"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns a service over d that was not started.
func serve(tb testing.TB, d *db.DB) *auth.Service {
	tb.Helper()
	s, err := auth.New(auth.DefaultConfig(), d, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// start returns a service over d that looks for changes all the time.
func start(t *testing.T, d *db.DB) *auth.Service {
	t.Helper()
	cfg := auth.DefaultConfig()
	cfg.RefreshInterval = 10 * time.Millisecond
	s, err := auth.New(cfg, d, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(t.Context()) })
	return s
}

// setUp returns a service over d and what its first start made.
func setUp(tb testing.TB, d *db.DB) (*auth.Service, *auth.Credentials) {
	tb.Helper()
	s := serve(tb, d)
	c, err := s.Bootstrap(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	if c == nil {
		tb.Fatal("the database is not empty")
	}
	return s, c
}

// run is dbtest.Run with a service that was set up.
func run(t *testing.T, fn func(t *testing.T, s *auth.Service, c *auth.Credentials, d *db.DB)) {
	t.Helper()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s, c := setUp(t, d)
		fn(t, s, c, d)
	})
}

// wantFault fails unless err has the kind, the code and, when given, the field.
func wantFault(tb testing.TB, err error, kind fault.Kind, code string, attr ...string) {
	tb.Helper()
	f := fault.From(err)
	if f == nil || f.Kind != kind || f.Code != code || (len(attr) > 0 && f.Attr != attr[0]) {
		tb.Fatalf("got %#v, want kind %d code %s attr %s", err, kind, code, attr)
	}
}

// eventually polls until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

// ptr is for the fields of changes.
func ptr[T any](v T) *T { return &v }

// must is for calls whose failure is not what a test is about.
func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

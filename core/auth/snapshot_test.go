package auth_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
)

func TestProjectByKey(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		for _, key := range []string{c.ProjectKey, " " + c.ProjectKey + "\n", "\t" + c.ProjectKey + "\u00a0"} {
			if p, err := s.ProjectByKey(t.Context(), key); err != nil || p.ID != c.Project.ID {
				t.Errorf("%q: %+v, %v", key, p, err)
			}
		}
		for name, key := range map[string]string{
			"unknown":    "phc_nobody",
			"empty":      "",
			"a personal": c.PersonalKey,
			"too long":   strings.Repeat("x", 65),
		} {
			for range 2 { // the second answer comes from memory
				_, err := s.ProjectByKey(t.Context(), key)
				t.Log(name)
				wantFault(t, err, fault.Unauthenticated, "invalid_api_key", "")
			}
		}
	})
}

func TestKnownKeyDoesNotAllocate(t *testing.T) {
	s, c := setUp(t, dbtest.SQLite(t))
	n := testing.AllocsPerRun(100, func() {
		if _, err := s.ProjectByKey(context.Background(), c.ProjectKey); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations for a known key", n)
	}
}

func TestKeysChangedByAnotherProcess(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, other *auth.Service, c *auth.Credentials, d *db.DB) {
		ctx := t.Context()
		s := start(t, d)
		k, err := other.CreateProjectKey(ctx, auth.NewProjectKey{ProjectID: c.Project.ID, Label: "second"})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := s.ProjectByKey(ctx, k.Key); err != nil || p.ID != c.Project.ID {
			t.Fatalf("a key made a moment ago: %+v, %v", p, err)
		}
		if err := other.RevokeProjectKey(ctx, c.Project.ID, k.ID); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the revoked project key is refused", func() bool {
			_, err := s.ProjectByKey(ctx, k.Key)
			return fault.Is(err, fault.Unauthenticated)
		})
		if _, err := s.PrincipalByKey(ctx, c.PersonalKey); err != nil {
			t.Fatal(err)
		}
		keys := must(other.PersonalKeys(ctx, c.User.ID))(t)
		if err := other.RevokePersonalKey(ctx, c.User.ID, keys[0].ID); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the revoked personal key is refused", func() bool {
			_, err := s.PrincipalByKey(ctx, c.PersonalKey)
			return fault.Is(err, fault.Unauthenticated)
		})
	})
}

func TestOwnChangesShowImmediately(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx := t.Context()
		if _, err := s.ProjectByKey(ctx, c.ProjectKey); err != nil {
			t.Fatal(err)
		}
		if _, err := s.UpdateProject(ctx, 1, auth.ProjectChange{AnonymizeIPs: ptr(true)}); err != nil {
			t.Fatal(err)
		}
		if p, _ := s.ProjectByKey(ctx, c.ProjectKey); !p.AnonymizeIPs {
			t.Error("the project is as it was")
		}
		if err := s.RevokeProject(ctx, 1); err != nil {
			t.Fatal(err)
		}
		_, err := s.ProjectByKey(ctx, c.ProjectKey)
		wantFault(t, err, fault.Unauthenticated, "invalid_api_key")
	})
}

func TestRolledBackChangeIsNotCached(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, d *db.DB) {
		var key string
		err := d.Tx(t.Context(), func(ctx context.Context) error {
			k, err := s.CreateProjectKey(ctx, auth.NewProjectKey{ProjectID: 1, Label: "gone"})
			if err != nil {
				t.Error(err)
			}
			key = k.Key
			return context.Canceled
		})
		if err == nil {
			t.Fatal("committed")
		}
		_, err = s.ProjectByKey(t.Context(), key)
		wantFault(t, err, fault.Unauthenticated, "invalid_api_key")
	})
}

func TestKeysStayValidInOutage(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, _ *auth.Service, c *auth.Credentials, d *db.DB) {
		ctx := t.Context()
		cfg := auth.DefaultConfig()
		cfg.RefreshInterval, cfg.PrincipalTTL = time.Nanosecond, time.Nanosecond
		s, err := auth.New(cfg, d, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.ProjectByKey(ctx, "phc_nobody")
		wantFault(t, err, fault.Unauthenticated, "invalid_api_key")
		who := must(s.PrincipalByKey(ctx, c.PersonalKey))(t)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if p, err := s.ProjectByKey(ctx, c.ProjectKey); err != nil || p.ID != 1 {
			t.Errorf("a key known before: %+v, %v", p, err)
		}
		if p, err := s.ProjectFor(ctx, who, "1"); err != nil || p.ID != 1 {
			t.Errorf("a project known before: %+v, %v", p, err)
		}
		if again, err := s.PrincipalByKey(ctx, c.PersonalKey); err != nil || again != who {
			t.Errorf("a personal key known before: %+v, %v", again, err)
		}
		_, err = s.ProjectByKey(ctx, "phc_nobody")
		wantFault(t, err, fault.Unavailable, "fetch_team_fail", "")
		if fault.From(err).RetryAfter <= 0 {
			t.Error("RetryAfter is missing")
		}
		_, err = s.PrincipalByKey(ctx, "phx_unknown")
		wantFault(t, err, fault.Unavailable, db.CodeUnavailable)
		_, err = s.ProjectFor(ctx, who, "7")
		wantFault(t, err, fault.Unavailable, "fetch_team_fail")
	})
}

func TestStartFailsWithoutDatabase(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	_ = d.Close()
	s := serve(t, d)
	wantFault(t, s.Start(t.Context()), fault.Unavailable, "fetch_team_fail")
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestOnChange(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, other *auth.Service, c *auth.Credentials, d *db.DB) {
		ctx := t.Context()
		s := start(t, d)
		changes := make(chan struct{}, 100)
		s.OnChange(func() {
			if _, err := s.ProjectByKey(ctx, "phc_asked_from_a_callback"); err == nil {
				t.Error("found")
			}
			changes <- struct{}{}
		})
		next := func(what string) {
			t.Helper()
			select {
			case <-changes:
			case <-time.After(time.Minute):
				t.Fatal("not called after " + what)
			}
		}
		if _, err := s.UpdateProject(ctx, 1, auth.ProjectChange{Name: ptr("Mine")}); err != nil {
			t.Fatal(err)
		}
		next("a change of this process")
		if _, err := other.UpdateProject(ctx, 1, auth.ProjectChange{Name: ptr("Theirs")}); err != nil {
			t.Fatal(err)
		}
		next("a change of another process")
		if _, err := other.CreateRole(ctx, auth.NewRole{OrganizationID: c.Organization.ID, Name: "Growth"}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := other.CreateProject(ctx, auth.NewProject{OrganizationID: c.Organization.ID, Name: "New"}); err != nil {
			t.Fatal(err)
		}
		next("a new project")
		if len(changes) > 0 {
			t.Error("called for a role, which no project or key depends on")
		}
	})
}

func TestConcurrentLookupsAndChanges(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, other *auth.Service, c *auth.Credentials, d *db.DB) {
		ctx := t.Context()
		s := start(t, d)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range 100 {
					if _, err := s.ProjectByKey(ctx, "phc_unknown_"+string(rune('a'+i%26))); !fault.Is(err, fault.Unauthenticated) {
						t.Errorf("unknown: %v", err)
					}
					if _, err := s.PrincipalByKey(ctx, c.PersonalKey); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 5 {
			k := must(other.CreateProjectKey(ctx, auth.NewProjectKey{ProjectID: 1, Label: "n"}))(t)
			if _, err := s.ProjectByKey(ctx, k.Key); err != nil {
				t.Errorf("a key made before it was asked for: %v", err)
			}
		}
		wg.Wait()
	})
}

func BenchmarkProjectByKey(b *testing.B) {
	s, c := setUp(b, dbtest.SQLite(b))
	ctx := b.Context()
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.ProjectByKey(ctx, c.ProjectKey); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("known parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.ProjectByKey(ctx, c.ProjectKey); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("unknown", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.ProjectByKey(ctx, "phc_nobody"); err == nil {
				b.Fatal("found")
			}
		}
	})
}

func BenchmarkPrincipalByKey(b *testing.B) {
	s, c := setUp(b, dbtest.SQLite(b))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.PrincipalByKey(b.Context(), c.PersonalKey); err != nil {
			b.Fatal(err)
		}
	}
}

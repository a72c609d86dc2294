package auth_test

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
)

func TestFullDiskIsUnavailable(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s, c := setUp(t, d)
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil {
		t.Fatal(err) // SQLite takes the size the file has now
	}
	name := strings.Repeat("n", 200)
	var err error
	for range 1000 {
		if _, _, err = s.CreateProject(t.Context(), auth.NewProject{OrganizationID: c.Organization.ID, Name: name}); err != nil {
			break
		}
	}
	wantAway(t, err)
	if _, err := s.Projects(t.Context(), ""); err != nil {
		t.Errorf("reading goes on: %v", err)
	}
}

func TestLostDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	target := dbtest.PostgresURL(t)
	d, err := db.Open(t.Context(), db.Config{URL: target}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, c := setUp(t, d)
	shut(t, target)
	_, err = s.Roles(t.Context(), c.Organization.ID)
	wantAway(t, err)
	_, err = s.CreateRole(t.Context(), auth.NewRole{OrganizationID: c.Organization.ID, Name: "Growth"})
	wantAway(t, err)
	if _, err := s.PrincipalByKey(t.Context(), c.PersonalKey); err == nil {
		t.Error("a key that was never asked for cannot be known")
	}
}

// shut makes the server close all connections to the database.
func shut(t *testing.T, target string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	admin, err := sql.Open("pgx", u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	for _, q := range []string{
		`ALTER DATABASE "` + name + `" ALLOW_CONNECTIONS false`,
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '` + name + `'`,
	} {
		if _, err := admin.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSlowDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		_, err := s.Roles(ctx, c.Organization.ID)
		wantAway(t, err)
	})
}

func wantAway(t *testing.T, err error) {
	t.Helper()
	f := fault.From(err)
	if f == nil || f.Kind != fault.Unavailable || f.RetryAfter == 0 {
		t.Fatalf("got %v, want Unavailable with a time to come back", err)
	}
}

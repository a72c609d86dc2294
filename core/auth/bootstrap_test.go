package auth_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

func TestBootstrap(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx := t.Context()
		if c.Project.ID != 1 {
			t.Errorf("the first project is %d, want 1", c.Project.ID)
		}
		if !strings.HasPrefix(c.ProjectKey, "phc_") || len(c.ProjectKey) != 47 {
			t.Errorf("project key %q", c.ProjectKey)
		}
		if !strings.HasPrefix(c.PersonalKey, "phx_") || len(c.PersonalKey) != 47 {
			t.Errorf("personal key %q", c.PersonalKey)
		}
		if p, err := s.ProjectByKey(ctx, c.ProjectKey); err != nil || p != c.Project {
			t.Errorf("got %+v, %v\nwant %+v", p, err, c.Project)
		}
		who, err := s.PrincipalByKey(ctx, c.PersonalKey)
		if err != nil {
			t.Fatal(err)
		}
		if who.User != c.User || !who.IsAdmin() || !who.HasScope("feature_flag:write") || who.OrganizationID != c.Organization.ID {
			t.Errorf("got %+v", who)
		}
		if p, err := s.ProjectFor(ctx, who, auth.Current); err != nil || p != c.Project {
			t.Errorf("got %+v, %v as the current project", p, err)
		}
		if again, err := s.Bootstrap(ctx); err != nil || again != nil {
			t.Errorf("a second time: %+v, %v", again, err)
		}
		next, _, err := s.CreateProject(ctx, auth.NewProject{OrganizationID: c.Organization.ID, Name: "Next"})
		if err != nil || next.ID != 2 {
			t.Errorf("the next project is %d, %v", next.ID, err)
		}
	})
}

func TestBootstrapRunsInOneProcess(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		var made atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			s := serve(t, d)
			wg.Go(func() {
				c, err := s.Bootstrap(t.Context())
				if err != nil {
					t.Error(err)
				}
				if c != nil {
					made.Add(1)
				}
			})
		}
		wg.Wait()
		if made.Load() != 1 {
			t.Fatalf("%d processes set the database up", made.Load())
		}
	})
}

package sessions_test

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/auth/keyusage"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/sessions"
)

// newPlace returns the sessions and the accounts of a first start.
func newPlace(t *testing.T, d *db.DB) (*sessions.Service, *auth.Service, *auth.Credentials) {
	t.Helper()
	users, err := auth.New(auth.DefaultConfig(), d, nil, nil)
	check(t, err)
	first, err := users.Bootstrap(t.Context())
	check(t, err)
	return sessions.New(sessions.DefaultConfig(), time.Minute, d, users, zap.NewNop()), users, first
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s, _, first := newPlace(t, d)
		cfg := sessions.DefaultConfig()
		_, token, err := s.Create(t.Context(), first.User.ID, sessions.Origin{Method: sessions.ByLink})
		check(t, err)
		valid := func() bool {
			_, err := s.PrincipalBySession(t.Context(), token)
			if err != nil && !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("got %v, want Unauthenticated", err)
			}
			return err == nil
		}
		for _, c := range []struct {
			after time.Duration
			want  bool
		}{{0, true}, {cfg.Idle - time.Hour, true}, {cfg.Idle + time.Minute, false}, {cfg.Lifetime, false}, {0, true}} {
			s.After(c.after)
			if valid() != c.want {
				t.Errorf("after %s: valid %v, want %v", c.after, !c.want, c.want)
			}
		}
		if all, err := s.OfUser(t.Context(), first.User.ID); err != nil || len(all) != 1 {
			t.Errorf("sessions %v, %v", all, err)
		}
		s.After(cfg.Idle + 25*time.Hour)
		check(t, s.Clean(t.Context()))
		s.After(0)
		if all, err := s.OfUser(t.Context(), first.User.ID); err != nil || len(all) != 0 {
			t.Errorf("sessions after the deletion of ended ones: %v, %v", all, err)
		}
	})
}

// The last request of a session is saved, and moves the end of a session without requests.
func TestLastRequestIsSaved(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s, _, first := newPlace(t, d)
		made, token, err := s.Create(t.Context(), first.User.ID, sessions.Origin{Method: sessions.ByLink})
		check(t, err)
		_, err = s.PrincipalBySession(t.Context(), token)
		check(t, err)
		check(t, s.SaveUsage(t.Context()))
		all, err := s.OfUser(t.Context(), first.User.ID)
		if err != nil || len(all) != 1 || !all[0].LastSeenAt.After(made.Session.LastSeenAt) {
			t.Errorf("sessions %+v, %v", all, err)
		}
	})
}

// A stream that is checked again and again keeps no session alive.
func TestUnrecordedLooksAreNoUse(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	s, _, first := newPlace(t, d)
	made, token, err := s.Create(t.Context(), first.User.ID, sessions.Origin{Method: sessions.ByLink})
	check(t, err)
	_, err = s.PrincipalBySession(keyusage.Unrecorded(t.Context()), token)
	check(t, err)
	check(t, s.SaveUsage(t.Context()))
	all, err := s.OfUser(t.Context(), first.User.ID)
	if err != nil || len(all) != 1 || all[0].LastSeenAt.After(made.Session.LastSeenAt) {
		t.Errorf("sessions %+v, %v", all, err)
	}
}

// A revocation is effective when it returns, also for a session that is read meanwhile; so
// is the end of a user.
func TestRevocationIsImmediate(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s, users, first := newPlace(t, d)
		for range 20 {
			h, token, err := s.Create(t.Context(), first.User.ID, sessions.Origin{Method: sessions.ByLink})
			check(t, err)
			reading := make(chan struct{})
			go func() {
				defer close(reading)
				for range 5 {
					_, _ = s.PrincipalBySession(t.Context(), token)
				}
			}()
			check(t, s.Revoke(t.Context(), first.User.ID, h.Session.ID))
			if _, err := s.PrincipalBySession(t.Context(), token); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("a revoked session: %v", err)
			}
			<-reading
			if _, err := s.PrincipalBySession(t.Context(), token); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("a revoked session that was read meanwhile: %v", err)
			}
			if err := s.Revoke(t.Context(), first.User.ID, h.Session.ID); !fault.Is(err, fault.NotFound) {
				t.Errorf("revoked again: %v", err)
			}
		}
		u, err := users.CreateUser(t.Context(), auth.NewUser{Email: "a@example.com", OrganizationID: first.Organization.ID})
		check(t, err)
		_, token, err := s.Create(t.Context(), u.ID, sessions.Origin{Method: sessions.ByLink})
		check(t, err)
		p, err := s.PrincipalBySession(t.Context(), token)
		if err != nil || p.OrgLevel != auth.LevelMember || p.OrganizationID != first.Organization.ID || !p.HasScope("feature_flag:write") || p.IsRestricted() || p.IsOperator() {
			t.Errorf("principal %+v, %v", p, err)
		}
		check(t, users.SetMemberLevel(t.Context(), first.Organization.ID, u.ID, auth.LevelAdmin))
		if p, err := s.PrincipalBySession(t.Context(), token); err != nil || p.OrgLevel != auth.LevelAdmin {
			t.Errorf("principal %+v, %v", p, err)
		}
		check(t, users.RevokeUser(t.Context(), u.ID))
		if _, err := s.PrincipalBySession(t.Context(), token); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("the session of a revoked user: %v", err)
		}
	})
}

// Admins see the sessions that work in their organization, also of users whose chosen
// organization does not have them any more.
func TestSessionsOfAnOrganization(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s, users, first := newPlace(t, d)
		here := first.Organization.ID
		other, err := users.CreateOrganization(t.Context(), "other")
		check(t, err)
		check(t, users.AddMember(t.Context(), other.ID, first.User.ID, auth.LevelMember))
		h, token, err := s.Create(t.Context(), first.User.ID, sessions.Origin{Method: sessions.ByLink})
		check(t, err)
		want := func(in string) {
			t.Helper()
			for _, id := range []string{here, other.ID} {
				n := 0
				if id == in {
					n = 1
				}
				if all, err := s.OfOrganization(t.Context(), id); err != nil || len(all) != n {
					t.Errorf("sessions %v, %v, want %d", all, err, n)
				}
			}
			if p, err := s.PrincipalBySession(t.Context(), token); err != nil || p.OrganizationID != in {
				t.Errorf("the session works in %v, %v", p, err)
			}
		}
		want(here)
		check(t, s.SetOrganization(t.Context(), h.Session.ID, other.ID))
		want(other.ID)
		check(t, users.RemoveMember(t.Context(), other.ID, first.User.ID))
		want(here)
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package invitation_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/accounts/invitation"
	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
)

// place is a database with the accounts of a first start.
type place struct {
	*invitation.Service
	users *auth.Service
	db    *db.DB
	owner *auth.Principal
	log   *activity.Log
}

func newPlace(t *testing.T, d *db.DB) place {
	t.Helper()
	users, err := auth.New(auth.DefaultConfig(), d, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := users.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	owner, err := users.PrincipalByKey(t.Context(), first.PersonalKey)
	if err != nil {
		t.Fatal(err)
	}
	audit := activity.NewAudit(d)
	return place{invitation.NewService(d, users, audit, nil, zap.NewNop()), users, d, owner, audit.Log()}
}

func (p place) invite(t *testing.T, email string, level int) (invitation.Invitation, string) {
	t.Helper()
	i, token, err := p.Create(t.Context(), p.owner, invitation.New{Email: email, FirstName: "Grace", Level: level})
	if err != nil {
		t.Fatal(err)
	}
	return i, token
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if f := fault.From(err); f == nil || f.Code != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestAnInvitationMakesAUserOnce(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := newPlace(t, d)
		i, token := p.invite(t, " Grace@Example.com ", auth.LevelAdmin)
		_, err := p.Accept(t.Context(), i.ID, "phi_other", "")
		wantCode(t, err, "invalid_invite")
		_, err = p.Accept(t.Context(), "none", token, "")
		wantCode(t, err, "invalid_invite")

		var wins, losses []error
		var mu sync.Mutex
		var all sync.WaitGroup
		var made invitation.Accepted
		for range 5 {
			all.Go(func() {
				out, err := p.Accept(context.Background(), i.ID, token, "")
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					wins, made = append(wins, nil), out
				} else {
					losses = append(losses, err)
				}
			})
		}
		all.Wait()
		if len(wins) != 1 || len(losses) != 4 {
			t.Fatalf("%d of 5 requests made a user: %v", len(wins), errors.Join(losses...))
		}
		for _, err := range losses {
			wantCode(t, err, "invalid_invite")
		}
		if made.User.Email != "grace@example.com" || made.User.FirstName != "Grace" {
			t.Errorf("user %+v", made.User)
		}
		who, err := p.users.PrincipalByKey(t.Context(), made.Key)
		if err != nil || who.OrgLevel != auth.LevelAdmin || who.OrganizationID != p.owner.OrganizationID || who.IsOperator() {
			t.Errorf("principal %+v, %v", who, err)
		}
		_, _, err = p.Create(t.Context(), p.owner, invitation.New{Email: "grace@example.com"})
		wantCode(t, err, "unique")

		entries, _, err := p.log.Find(t.Context(), activity.Query{OrganizationID: p.owner.OrganizationID, Scope: activity.Invite, Limit: 10})
		if err != nil || len(entries) != 2 || entries[0].Activity != "accepted" || entries[0].UserEmail != "grace@example.com" || entries[1].Activity != activity.Created {
			t.Errorf("entries %+v, %v", entries, err)
		}
		text, err := json.Marshal(entries)
		if err != nil || strings.Contains(string(text), token) || strings.Contains(string(text), made.Key) {
			t.Errorf("an entry has a secret: %s (%v)", text, err)
		}
	})
}

func TestInvitationsRaiseNoRights(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := newPlace(t, d)
		admin := *p.owner
		admin.OrgLevel, admin.Scopes = auth.LevelAdmin, []string{"organization:write"}
		_, _, err := p.Create(t.Context(), &admin, invitation.New{Email: "a@example.com", Level: auth.LevelOwner})
		wantCode(t, err, "permission_denied")

		i, token, err := p.Create(t.Context(), &admin, invitation.New{Email: "a@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		made, err := p.Accept(t.Context(), i.ID, token, "Ada")
		if err != nil {
			t.Fatal(err)
		}
		who, err := p.users.PrincipalByKey(t.Context(), made.Key)
		if err != nil || who.HasScope("feature_flag:read") || !who.HasScope("organization:write") || who.OrgLevel != auth.LevelMember {
			t.Errorf("principal %+v, %v", who, err)
		}

		// An invitation ends with the rights of its inviter.
		u, err := p.users.CreateUser(t.Context(), auth.NewUser{Email: "b@example.com", OrganizationID: p.owner.OrganizationID, Level: auth.LevelAdmin})
		if err != nil {
			t.Fatal(err)
		}
		admin.User = u
		i, token, err = p.Create(t.Context(), &admin, invitation.New{Email: "c@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.users.SetMemberLevel(t.Context(), p.owner.OrganizationID, u.ID, auth.LevelMember); err != nil {
			t.Fatal(err)
		}
		_, err = p.Accept(t.Context(), i.ID, token, "")
		wantCode(t, err, "invalid_invite")
	})
}

func TestInvitationsEnd(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := newPlace(t, d)
		old, oldToken := p.invite(t, "a@example.com", 0)
		i, token := p.invite(t, "a@example.com", 0) // replaces the first
		_, err := p.Accept(t.Context(), old.ID, oldToken, "")
		wantCode(t, err, "invalid_invite")
		all, err := p.List(t.Context(), p.owner.OrganizationID)
		if err != nil || len(all) != 1 || all[0].ID != i.ID || all[0].Level != auth.LevelMember {
			t.Fatalf("%+v, %v", all, err)
		}
		p.After(t, invitation.Validity)
		_, err = p.Accept(t.Context(), i.ID, token, "")
		wantCode(t, err, "expired_invite")
		if err := p.Delete(t.Context(), p.owner, i.ID); err != nil {
			t.Fatal(err)
		}
		stranger := *p.owner
		stranger.OrganizationID = "other"
		other, _ := p.invite(t, "b@example.com", 0)
		wantCode(t, p.Delete(t.Context(), &stranger, other.ID), "not_found")
		wantCode(t, p.Delete(t.Context(), p.owner, i.ID), "not_found")
	})
}

// A request with a wrong token, which needs no key, does not wait for the writer of the
// database, and a name that no user can have is refused when it is given.
func TestWrongInvitations(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		p := newPlace(t, d)
		i, token := p.invite(t, "a@example.com", 0)
		err := d.Tx(t.Context(), func(context.Context) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := p.Accept(ctx, i.ID, "phi_wrong", "")
			wantCode(t, err, "invalid_invite")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"", "x", "\x00", "\xff", "'"} {
			_, err := p.Accept(t.Context(), id, token, "")
			wantCode(t, err, "invalid_invite")
			wantCode(t, p.Delete(t.Context(), p.owner, id), "not_found")
		}
		_, _, err = p.Create(t.Context(), p.owner, invitation.New{Email: "b@example.com", FirstName: strings.Repeat("x", 151)})
		wantCode(t, err, "max_length")
		if _, err := p.Accept(t.Context(), i.ID, token, ""); err != nil {
			t.Error(err)
		}
	})
}

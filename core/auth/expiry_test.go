package auth_test

import (
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/fault"
)

// TestKeysExpire does not refresh: the memory alone refuses the key in time.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		ctx := t.Context()
		in := auth.NewPersonalKey{UserID: c.User.ID, Label: "ci", Scopes: []string{"user:write"}, ExpiresAt: time.Now().Add(-time.Second)}
		_, _, err := s.CreatePersonalKey(ctx, in)
		wantFault(t, err, fault.Invalid, "invalid_input", "expires_at")
		var k auth.PersonalKey
		var secret string
		for life := 2 * time.Second; ; life *= 2 { // on a slow machine the end may come before the key
			in.ExpiresAt = time.Now().Add(life)
			if k, secret, err = s.CreatePersonalKey(ctx, in); err == nil {
				break
			}
			if time.Now().Before(in.ExpiresAt) {
				t.Fatal(err)
			}
		}
		who, err := s.PrincipalByKey(ctx, secret)
		if err != nil && time.Now().Before(in.ExpiresAt) {
			t.Fatal(err)
		}
		if who != nil {
			for _, at := range []time.Time{in.ExpiresAt.Add(time.Hour), {}} {
				_, err := s.UpdatePersonalKey(ctx, c.User.ID, k.ID, auth.PersonalKeyChange{ExpiresAt: &at, By: who})
				wantFault(t, err, fault.Forbidden, "permission_denied")
			}
		}
		eventually(t, "the key expires", func() bool {
			asked := time.Now()
			_, err := s.PrincipalByKey(ctx, secret)
			if err == nil && asked.After(in.ExpiresAt) {
				t.Error("an expired key is valid")
			}
			return err != nil
		})
		if time.Now().Before(in.ExpiresAt) {
			t.Error("the key expired early")
		}
		_, err = s.PrincipalByKey(ctx, secret)
		wantFault(t, err, fault.Unauthenticated, auth.CodeExpired)
		forever := time.Time{}
		if _, err := s.UpdatePersonalKey(ctx, c.User.ID, k.ID, auth.PersonalKeyChange{ExpiresAt: &forever}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.PrincipalByKey(ctx, secret); err != nil {
			t.Errorf("a key whose end was removed: %v", err)
		}
	})
}

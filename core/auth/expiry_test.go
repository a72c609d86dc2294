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
		in.ExpiresAt = time.Now().Add(2 * time.Second)
		k, secret, err := s.CreatePersonalKey(ctx, in)
		if err != nil {
			t.Fatal(err)
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
			_, err := s.PrincipalByKey(ctx, secret)
			if err == nil && time.Now().After(in.ExpiresAt.Add(50*time.Millisecond)) {
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

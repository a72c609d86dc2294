package auth_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
)

// A valid personal key is known before its first use, so that a flood of wrong keys
// from its address does not keep it out; an expired or revoked one is not.
func TestValidKeysAreKnownBeforeTheirFirstUse(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *auth.Service, c *auth.Credentials, _ *db.DB) {
		fresh, key, err := s.CreatePersonalKey(t.Context(), auth.NewPersonalKey{UserID: c.User.ID, Label: "fresh", Scopes: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]bool{
			c.ProjectKey: true, c.PersonalKey: true, key: true, " " + key + "\n": true, "phx_wrong": false, "": false,
		} {
			if got := s.Known(text); got != want {
				t.Errorf("%q is known: %v, want %v", text, got, want)
			}
		}
		if err := s.RevokePersonalKey(t.Context(), c.User.ID, fresh.ID); err != nil {
			t.Fatal(err)
		}
		if s.Known(key) {
			t.Error("a revoked key is known")
		}
	})
}

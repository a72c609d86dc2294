package apikey_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/auth/apikey"
)

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		held, wanted string
		want         bool
	}{
		{"*", "cohort:write", true}, {"cohort:read", "cohort:read", true}, {"cohort:write", "cohort:read", true}, {"cohort:*", "cohort:write", true},
		{"cohort:read", "cohort:write", false}, {"cohort:write", "feature_flag:read", false}, {"dashboard:write", "cohort:read", false},
		{"feature_flag:read", "cohort:read", true}, {"feature_flag:write", "dashboard:read", true}, {"feature_flag:*", "dashboard:write", true},
		{"feature_flag:read", "cohort:write", false}, {"feature_flag:write", "person:read", false}, {"person:write", "cohort:read", false},
	} {
		if got := apikey.Covers(c.held, c.wanted); got != c.want {
			t.Errorf("Covers(%s, %s) = %t", c.held, c.wanted, got)
		}
	}
}

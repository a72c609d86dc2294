package auth_test

import (
	"testing"

	"github.com/guidonhq/guidon/core/auth"
)

func TestCan(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		held []string
		want map[string]bool
	}{
		"read is read":       {[]string{"feature_flag:read"}, map[string]bool{"feature_flag:read": true, "feature_flag:write": false}},
		"write implies read": {[]string{"feature_flag:write"}, map[string]bool{"feature_flag:read": true, "feature_flag:write": true, "action:read": false}},
		"a star is both":     {[]string{"project:*"}, map[string]bool{"project:read": true, "project:write": true, "project": false}},
		"one star is all":    {[]string{"*"}, map[string]bool{"feature_flag:write": true, "made:up": true}},
		"scopes add up":      {[]string{"action:read", "cohort:write"}, map[string]bool{"action:read": true, "cohort:read": true, "action:write": false}},
		"nothing is nothing": {nil, map[string]bool{"feature_flag:read": false, "": false}},
		"a prefix is not it": {[]string{"feature_flag:write"}, map[string]bool{"feature_flag_x:read": false, "feature_flag:": false}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &auth.Principal{Scopes: c.held}
			for scope, want := range c.want {
				if got := p.HasScope(scope); got != want {
					t.Errorf("Can(%q) is %v", scope, got)
				}
			}
		})
	}
	if (*auth.Principal)(nil).HasScope("*") {
		t.Error("a nil principal has a scope")
	}
}

func TestHasScopeDoesNotAllocate(t *testing.T) {
	p := &auth.Principal{Scopes: []string{"action:read", "feature_flag:write"}}
	if n := testing.AllocsPerRun(100, func() { _ = p.HasScope("feature_flag:read") }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

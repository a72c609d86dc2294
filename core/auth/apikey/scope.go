package apikey

import (
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
)

// scopeObjects are the objects of scopes, sorted. No path needs insight and query;
// clients of PostHog create keys with them.
var scopeObjects = []string{
	"action", "activity_log", "cohort", "dashboard", "event", "event_definition", "feature_flag", "group",
	"insight", "organization", "person", "plugin", "project", "property_definition", "query", "role", "user",
}

// ScopeObjects returns the objects of scopes. A scope is an object with :read,
// :write or :*.
func ScopeObjects() []string { return slices.Clone(scopeObjects) }

// CheckScopes returns the scopes sorted and without duplicates, or Invalid.
func CheckScopes(scopes []string) ([]string, error) {
	if len(scopes) == 0 {
		return nil, fault.Field("scopes", "required", `At least one scope is needed; "*" is everything.`)
	}
	out := slices.Clone(scopes)
	slices.Sort(out)
	for _, s := range out {
		if !validScope(s) {
			return nil, fault.Fieldf("scopes", "invalid_input", "Invalid scope: %s. A scope is * or one of %s with :read, :write or :*.",
				s, strings.Join(scopeObjects, ", "))
		}
	}
	return slices.Compact(out), nil
}

// secretScopes are the scopes that a secret key of a project may have, sorted.
// endpoint:read is accepted for keys that clients of PostHog create; no path
// needs it.
var secretScopes = []string{"endpoint:read", "feature_flag:read"}

// SecretScopes returns the scopes that a secret key may have.
func SecretScopes() []string { return slices.Clone(secretScopes) }

// CheckSecretScopes is CheckScopes for a secret key of a project.
func CheckSecretScopes(scopes []string) ([]string, error) {
	if len(scopes) == 0 {
		return nil, fault.Field("scopes", "required", "At least one scope is needed.")
	}
	out := slices.Clone(scopes)
	slices.Sort(out)
	for _, s := range out {
		if !slices.Contains(secretScopes, s) {
			return nil, fault.Fieldf("scopes", "invalid_input", "Invalid scope: %s. A secret key may have %s.", s, strings.Join(secretScopes, ", "))
		}
	}
	return slices.Compact(out), nil
}

func validScope(scope string) bool {
	if scope == "*" {
		return true
	}
	object, action, _ := strings.Cut(scope, ":")
	return slices.Contains(scopeObjects, object) && (action == "read" || action == "write" || action == "*")
}

// Covers reports whether a held scope includes a wanted one. Write includes read, and
// the scopes of flags include those of cohorts and dashboards, which belong to
// flags. It does not allocate.
func Covers(held, wanted string) bool {
	if held == "*" || held == wanted {
		return true
	}
	object, action, _ := strings.Cut(held, ":")
	about, what, _ := strings.Cut(wanted, ":")
	if object != about && (object != "feature_flag" || about != "cohort" && about != "dashboard") {
		return false
	}
	return action == what || (action == "*" && what != "") || (action == "write" && what == "read")
}

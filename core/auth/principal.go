package auth

import (
	"slices"
	"strings"
)

// Principal is who stands behind a personal key: a user in one organization.
// It is shared between requests and must not be changed.
type Principal struct {
	User             User
	OrganizationID   string
	OrgLevel         int      // LevelMember, LevelAdmin or LevelOwner
	Scopes           []string // what the key may do; checked by Can
	ProjectIDs       []int64  // the only projects the key may touch; empty: all of the organization
	CurrentProjectID int64    // what the user last chose to work in, 0 when nothing
	KeyID            int64
}

// HasScope reports whether the key has scope, an object and an action as in
// "feature_flag:read". A key that may write may read, "feature_flag:*" is
// both, "*" is everything.
func (p *Principal) HasScope(scope string) bool {
	return p != nil && slices.ContainsFunc(p.Scopes, func(held string) bool { return covers(held, scope) })
}

// IsAdmin reports whether the user manages the organization.
func (p *Principal) IsAdmin() bool { return p != nil && p.OrgLevel >= LevelAdmin }

// CanAccessProject reports whether the key is not kept away from the project. It says
// nothing of whose project that is.
func (p *Principal) CanAccessProject(projectID int64) bool {
	return len(p.ProjectIDs) == 0 || slices.Contains(p.ProjectIDs, projectID)
}

// Covers reports whether the key may do all that a key of the same user with
// these scopes, kept to these projects (none: every project), may do. A key
// makes, changes and revokes no other keys than those it covers.
func (p *Principal) Covers(scopes []string, projectIDs []int64) bool {
	for _, s := range scopes {
		// Who may write may read, so writing is all there is to do.
		if object, all := strings.CutSuffix(s, ":*"); all {
			s = object + ":write"
		}
		if !p.HasScope(s) {
			return false
		}
	}
	if len(projectIDs) == 0 {
		return len(p.ProjectIDs) == 0
	}
	return !slices.ContainsFunc(projectIDs, func(id int64) bool { return !p.CanAccessProject(id) })
}

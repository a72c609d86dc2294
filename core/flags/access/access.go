// Package access decides who may change flags and the objects that flags
// depend on.
//
// A member edits flags by level (admins and owners), by the default of the
// organization, by a role, as the creator of a flag, or by a role that has
// access to that flag (auth.Levels). The rule is one package because flags are
// not only changed by their own endpoints: a cohort decides which persons match
// a flag, and a usage dashboard belongs to a flag. A cohort may be part of any
// flag of the project, so changing one needs the right to edit all flags, and so
// does creating a flag. A dashboard follows the flag that it belongs to.
//
// The rule does not check scopes of keys (core/web does) and does not hide
// objects: every member may see the flags of a project.
package access

import (
	"context"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
)

// Roles reads access levels.
type Roles interface {
	// Levels returns the access levels and roles of p.
	Levels(ctx context.Context, p *auth.Principal) (auth.Levels, error)
}

// Flags reads what the rule needs of flags.
type Flags interface {
	// RolesOfFlags returns the ids of the roles with access to each flag.
	RolesOfFlags(ctx context.Context, flagIDs []int64) (map[int64][]string, error)
	// CreatorOfFlag returns the user who created a flag, 0 for none, or NotFound.
	CreatorOfFlag(ctx context.Context, projectID, flagID int64) (int64, error)
}

// Flag is a flag and the user who created it, 0 for none.
type Flag struct{ ID, CreatedBy int64 }

func (f Flag) createdBy(who *auth.Principal) bool {
	return f.CreatedBy != 0 && f.CreatedBy == who.User.ID
}

// Policy answers who may edit. It is safe for concurrent use and joins the
// transaction in its context.
type Policy struct {
	roles Roles
	flags Flags
}

// NewPolicy returns the policy over roles and flags.
func NewPolicy(roles Roles, flags Flags) *Policy { return &Policy{roles: roles, flags: flags} }

// RequireEditor fails with Forbidden unless the caller may edit all flags. It
// guards new flags and cohorts.
func (p *Policy) RequireEditor(ctx context.Context, who *auth.Principal) error {
	levels, err := p.roles.Levels(ctx, who)
	if err != nil {
		return err
	}
	if !levels.CanEdit(false, nil) {
		return fault.New(fault.Forbidden, "permission_denied", "You don't have edit permissions for feature flags and what they depend on.")
	}
	return nil
}

// RequireFlagEditor fails with Forbidden unless the caller may edit the flag.
func (p *Policy) RequireFlagEditor(ctx context.Context, who *auth.Principal, f Flag) error {
	may, err := p.Editable(ctx, who, f)
	if err != nil {
		return err
	}
	if !may[f.ID] {
		return fault.New(fault.Forbidden, "permission_denied", "You don't have edit permissions for this feature flag.")
	}
	return nil
}

// RequirePartEditor is for an object that belongs to the flag with flagID: it
// fails with Forbidden unless the caller may edit that flag or, if flagID is 0
// or the flag no longer exists, all flags.
func (p *Policy) RequirePartEditor(ctx context.Context, who *auth.Principal, projectID, flagID int64) error {
	if flagID == 0 {
		return p.RequireEditor(ctx, who)
	}
	creator, err := p.flags.CreatorOfFlag(ctx, projectID, flagID)
	switch {
	case fault.Is(err, fault.NotFound):
		return p.RequireEditor(ctx, who)
	case err != nil:
		return err
	}
	return p.RequireFlagEditor(ctx, who, Flag{flagID, creator})
}

// Editable reports for each flag, by id, whether the caller may edit it.
func (p *Policy) Editable(ctx context.Context, who *auth.Principal, list ...Flag) (map[int64]bool, error) {
	levels, err := p.roles.Levels(ctx, who)
	if err != nil {
		return nil, err
	}
	may := make(map[int64]bool, len(list))
	var unknown []int64
	for _, f := range list {
		if levels.CanEdit(f.createdBy(who), nil) {
			may[f.ID] = true
		} else {
			unknown = append(unknown, f.ID)
		}
	}
	if len(unknown) == 0 || len(levels.Roles) == 0 {
		return may, nil
	}
	access, err := p.flags.RolesOfFlags(ctx, unknown)
	if err != nil {
		return nil, err
	}
	for _, id := range unknown {
		may[id] = levels.CanEdit(false, access[id])
	}
	return may, nil
}

// RequireGiver fails with Forbidden unless the caller may give roles access to
// the flag.
func (p *Policy) RequireGiver(ctx context.Context, who *auth.Principal, f Flag) error {
	levels, err := p.roles.Levels(ctx, who)
	if err != nil {
		return err
	}
	if !levels.CanGiveAccess(f.createdBy(who)) {
		return fault.New(fault.Forbidden, "permission_denied", "You can't edit roles for this feature flag.")
	}
	return nil
}

package flags

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/graph"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/jsontext"
)

// checkConflict detects lost updates. It fails with Conflict if the caller read an
// older version, unless the request holds the flag as it was read and no other
// change concerns the same fields.
func (c *checker) checkConflict(ctx context.Context, f *Flag, in Input) error {
	if in.Version == nil || *in.Version == f.Version {
		return nil
	}
	if original, err := document.Parse(in.Original); err == nil {
		clash, err := c.clashes(ctx, f, in, original)
		if err != nil || !clash {
			return err
		}
	}
	editor := "somebody else"
	if users, err := c.deps.Users.UsersByID(ctx, []int64{f.UpdatedBy}); err == nil {
		if u, ok := users[f.UpdatedBy]; ok {
			editor = u.Email
		}
	}
	return fault.Newf(fault.Conflict, "conflict",
		"The feature flag was changed by %s since you read it: it is at version %d, you sent version %d. Read it again and repeat your change.",
		editor, f.Version, *in.Version)
}

// clashes reports whether another change concerns a field that in changes.
func (c *checker) clashes(ctx context.Context, f *Flag, in Input, original *document.Object) (bool, error) {
	names, err := c.read.cohortNames(ctx, []*Flag{f})
	if err != nil {
		return false, err
	}
	now := f.Fields
	now.Filters = document.Shown(sealed.Redact(f.Filters), names)
	current, err := document.Parse(document.Encode(now))
	if err != nil {
		return false, fmt.Errorf("compare flag %d: %w", f.ID, err)
	}
	sent, err := document.Parse(document.Encode(in))
	if err != nil {
		return false, fmt.Errorf("compare flag %d: %w", f.ID, err)
	}
	for _, field := range sent.Names {
		want, _ := sent.Get(field)
		was, known := original.Get(field)
		is, _ := current.Get(field)
		mine := !known || !jsontext.Equal(want, was)
		if mine && !jsontext.Equal(is, was) && !jsontext.Equal(is, want) {
			return true, nil
		}
	}
	return false, nil
}

// checkDependencies fails if the change deletes or disables a flag that active
// flags depend on, or enables a flag whose own dependencies are disabled.
func (c *checker) checkDependencies(ctx context.Context, before, after *Flag) error {
	was, is := before.Active && !before.Deleted, after.Active && !after.Deleted
	gone := !before.Deleted && after.Deleted
	if !gone && was == is {
		return nil
	}
	project, err := c.deps.Definitions.Definitions(ctx, after.ProjectID)
	if err != nil {
		return err
	}
	if is {
		needed := document.FlagDependencies(after.Filters)
		return missingDependency(graph.Closure(project.Flags, needed), needed)
	}
	var names []string
	for _, other := range graph.Dependents(project.Flags, after.ID) {
		if other.ID != after.ID && other.Active {
			names = append(names, other.Key)
		}
	}
	if len(names) == 0 {
		return nil
	}
	verb := "disabled"
	if gone {
		verb = "deleted"
	}
	return fault.Newf(fault.Invalid, rules.CodeInvalid,
		"This feature flag cannot be %s because other active flags depend on it: %s.", verb, rules.FirstNames(names))
}

func missingDependency(known map[int64]rules.FlagRef, needed []int64) error {
	for _, id := range needed {
		ref, ok := known[id]
		if !ok {
			return fault.Newf(fault.Invalid, rules.CodeInvalid, "This feature flag cannot be enabled because it depends on flag %d, which does not exist.", id)
		}
		if !ref.Active {
			return fault.Newf(fault.Invalid, rules.CodeInvalid, "This feature flag cannot be enabled because it depends on flag %q, which is disabled.", ref.Key)
		}
	}
	return nil
}

package flags

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/graph"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/jsontext"
)

// apply applies the fields of in to f and checks the write rules. The key goes
// first: it depends on whether f is deleted now.
func (a *applier) apply(ctx context.Context, f *Flag, in Input) error {
	if err := a.applyKey(ctx, f, in); err != nil {
		return err
	}
	stored := f.Filters
	if err := a.applyFilters(ctx, f, in); err != nil {
		return err
	}
	in.applyTo(f)
	if err := f.checkBucketing(); err != nil {
		return err
	}
	var err error
	if f.Filters, err = a.deps.Payloads.Apply(f.ProjectID, f.EncryptedPayloads, f.RemoteConfiguration, f.Filters, stored); err != nil {
		return err
	}
	return a.applyDashboards(ctx, f, in.AnalyticsDashboards)
}

// applyKey sets the key of f: the key of in, or for a restored flag its key
// without the suffix of freed keys.
func (a *applier) applyKey(ctx context.Context, f *Flag, in Input) error {
	key := f.Key
	if in.Deleted != nil && !*in.Deleted && f.Deleted {
		key = strings.TrimSuffix(f.Key, retiredSuffix(f))
	}
	if in.Key != nil && *in.Key != f.Key {
		key = *in.Key
		if !keyPattern.MatchString(key) {
			return fault.Field("key", "invalid_key", "Only letters, numbers, hyphens (-) & underscores (_) are allowed.")
		}
	}
	if key == f.Key {
		return nil
	}
	holder, err := a.store.flagByKey(ctx, f.ProjectID, key)
	switch {
	case fault.Is(err, fault.NotFound):
	case err != nil:
		return err
	case !holder.Deleted:
		return fault.Field("key", "unique", "There is already a feature flag with this key.")
	default:
		if err := a.freeKey(ctx, holder); err != nil {
			return err
		}
	}
	f.Filters = document.RenameEnrollment(f.Filters, key)
	f.Key = key
	return nil
}

// retiredSuffix is the suffix that the key of a deleted flag gets when another
// flag takes the key.
func retiredSuffix(f *Flag) string { return ":deleted:" + strconv.FormatInt(f.ID, 10) }

// freeKey adds the suffix to the key of a deleted flag. It stores no version,
// because no user changed the flag.
func (a *applier) freeKey(ctx context.Context, f *Flag) error {
	key := f.Key
	f.Key += retiredSuffix(f)
	if err := a.store.update(ctx, f); err != nil {
		return err
	}
	return a.deps.HashKeys.RenameFlag(ctx, f.ProjectID, key, f.Key)
}

// applyFilters replaces the filters of f as a whole. Filters of the oldest form are
// replaced by their normalized form if that is stored. Empty filters leave an
// existing flag unchanged, as in the reference; other filters without a list of
// condition sets are rejected, because they would be lost.
func (a *applier) applyFilters(ctx context.Context, f *Flag, in Input) error {
	if in.Filters == nil {
		return nil
	}
	count, exists := document.ConditionSets(in.Filters)
	switch {
	case f.ID != 0 && !exists:
		if d, err := document.Parse(in.Filters); err != nil || !document.HasLegacyFilters(d) {
			return missingGroups(d)
		}
	case f.ID == 0 && exists && count == 0:
		return fault.Field("filters", rules.CodeInvalid, "Feature flag filters must contain at least one condition set.")
	}
	stored := f.Filters
	if err := a.setFilters(ctx, f, in.checked); err != nil {
		return err
	}
	if sameFilters(stored, f.Filters) {
		f.Filters = stored
	}
	return nil
}

// sameFilters reports whether two texts of filters have the same normalized form.
func sameFilters(a, b json.RawMessage) bool {
	a, errA := document.Normalized(a)
	b, errB := document.Normalized(b)
	return errA == nil && errB == nil && jsontext.Equal(a, b)
}

// missingGroups returns the error for filters without condition sets, or nil if they
// are empty.
func missingGroups(d *document.Object) error {
	if d == nil || len(d.Names) == 0 {
		return nil
	}
	return fault.Field("filters", rules.CodeInvalid,
		"Filters replace those of the flag as a whole: send the condition sets (groups), too.")
}

// check checks filters for a flag before the transaction that stores them. Only
// the project and the id of f are used, and its key if it has one.
func (a *applier) check(ctx context.Context, f *Flag, filters json.RawMessage) rules.Checked {
	if filters == nil {
		return rules.Checked{}
	}
	refs, err := a.references(ctx, f, filters)
	if err != nil {
		return rules.Failed(err)
	}
	if a.deps.Sets != nil {
		refs.Patterns = a.deps.Sets.Set(f.ProjectID).Patterns(f.ID, 0)
	}
	return rules.Check(filters, refs, a.cfg.Limits())
}

// setFilters sets the filters of f if they pass the write rules.
func (a *applier) setFilters(ctx context.Context, f *Flag, checked rules.Checked) (err error) {
	var refs rules.References
	if checked.Linked() {
		if refs, err = a.references(ctx, f, checked.Raw()); err != nil {
			return err
		}
	}
	text, err := checked.Text(refs, nil)
	if err == nil {
		f.Filters = text
	}
	return err
}

// references loads the flags and cohorts that filters refer to.
func (a *applier) references(ctx context.Context, f *Flag, filters json.RawMessage) (rules.References, error) {
	refs := rules.References{Self: f.ID, Operators: a.deps.Operators}
	var err error
	if needed := document.FlagDependencies(filters); len(needed) > 0 {
		project, err := a.deps.Definitions.Definitions(ctx, f.ProjectID)
		if err != nil {
			return refs, err
		}
		refs.Flags = graph.Closure(project.Flags, append(needed, f.ID))
		if self := refs.Flags[f.ID]; f.Key != "" {
			self.Key = f.Key
			refs.Flags[f.ID] = self
		}
	}
	if len(document.CohortReferences(filters)) > 0 {
		refs.Cohorts, err = a.deps.Cohorts.References(ctx, f.ProjectID)
	}
	return refs, err
}

// applyDashboards links dashboards. It fails if the project has no such dashboard.
func (a *applier) applyDashboards(ctx context.Context, f *Flag, ids *[]int64) error {
	if ids == nil {
		return nil
	}
	known, err := a.deps.Dashboards.Existing(ctx, f.ProjectID, *ids)
	if err != nil {
		return err
	}
	for _, id := range *ids {
		if !known[id] {
			return fault.Fieldf("analytics_dashboards", "does_not_exist", "Invalid pk \"%d\" - object does not exist.", id)
		}
	}
	f.AnalyticsDashboards = *ids
	return nil
}

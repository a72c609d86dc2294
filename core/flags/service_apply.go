package flags

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/rules"
)

// apply applies the fields of in to f and checks the write rules. The key goes
// first: it depends on whether f is deleted now.
func (s *Service) apply(ctx context.Context, f *Flag, in Input) error {
	if err := s.applyKey(ctx, f, in); err != nil {
		return err
	}
	if err := s.applyFilters(ctx, f, in.Filters); err != nil {
		return err
	}
	in.applyTo(f)
	return s.applyDashboards(ctx, f, in.AnalyticsDashboards)
}

// applyKey gives f its key: the one asked for, or for a restored flag the one
// it had before it was retired.
func (s *Service) applyKey(ctx context.Context, f *Flag, in Input) error {
	key := f.Key
	if in.Deleted != nil && !*in.Deleted && f.Deleted {
		key = strings.TrimSuffix(f.Key, retired(f))
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
	holder, err := s.store.flagByKey(ctx, f.ProjectID, key)
	switch {
	case fault.Is(err, fault.NotFound):
	case err != nil:
		return err
	case !holder.Deleted:
		return fault.Field("key", "unique", "There is already a feature flag with this key.")
	default:
		if err := s.retire(ctx, holder); err != nil {
			return err
		}
	}
	f.Filters = renameEnrollment(f.Filters, key)
	f.Key = key
	return nil
}

// retired is what the key of a deleted flag ends with once another flag has
// taken the key.
func retired(f *Flag) string { return ":deleted:" + strconv.FormatInt(f.ID, 10) }

// retire makes the key of a deleted flag free. It is no version of the flag:
// nothing was decided about it.
func (s *Service) retire(ctx context.Context, f *Flag) error {
	key := f.Key
	f.Key += retired(f)
	if err := s.store.update(ctx, f); err != nil {
		return err
	}
	return s.store.renameHashKeys(ctx, f.ProjectID, key, f.Key)
}

// applyFilters puts new filters in place of the old, as a whole. Filters that
// name no condition sets leave those of an existing flag as they are.
func (s *Service) applyFilters(ctx context.Context, f *Flag, filters json.RawMessage) error {
	if filters == nil {
		return nil
	}
	count, named := conditionSets(filters)
	switch {
	case f.ID != 0 && !named:
		return nil
	case f.ID == 0 && named && count == 0:
		return fault.Field("filters", rules.CodeInvalid, "Feature flag filters must contain at least one condition set.")
	}
	return s.setFilters(ctx, f, filters)
}

// conditionSets counts the condition sets and reports whether the filters have
// the list at all.
func conditionSets(filters json.RawMessage) (count int, named bool) {
	d, err := document.Parse(filters)
	if err != nil {
		return -1, true // CheckFilters says what is wrong
	}
	raw, named := d.Get("groups")
	list, err := document.ParseList(raw)
	if err != nil {
		return -1, named
	}
	return len(list), named
}

// setFilters stores filters in f when they keep the write rules.
func (s *Service) setFilters(ctx context.Context, f *Flag, filters json.RawMessage) error {
	refs, err := s.references(ctx, f, filters)
	if err != nil {
		return err
	}
	checked, err := rules.CheckFilters(filters, refs, s.cfg.Limits())
	if err != nil {
		return err
	}
	f.Filters = checked
	return nil
}

// references looks up what filters point at.
func (s *Service) references(ctx context.Context, f *Flag, filters json.RawMessage) (rules.References, error) {
	refs := rules.References{Self: f.ID, Operators: s.deps.Operators}
	var err error
	if len(document.FlagDependencies(filters)) > 0 {
		if refs.Flags, err = s.store.graph(ctx, f.ProjectID); err != nil {
			return refs, err
		}
		self := refs.Flags[f.ID]
		self.Key = f.Key
		refs.Flags[f.ID] = self
	}
	if len(document.CohortReferences(filters)) > 0 {
		refs.Cohorts, err = s.deps.Cohorts.References(ctx, f.ProjectID)
	}
	return refs, err
}

// renameEnrollment makes the early-access conditions of a flag ask for its new
// key.
func renameEnrollment(filters json.RawMessage, to string) json.RawMessage {
	const prefix = "$feature_enrollment/"
	d, err := document.Parse(filters)
	if err != nil {
		return filters
	}
	if _, ok := d.Given("super_groups"); !ok {
		return filters
	}
	return document.RewriteProperties(filters, []string{"super_groups"}, func(p *document.Object) {
		raw, _ := p.Get("key")
		if name, ok := document.Text(raw); ok && strings.HasPrefix(name, prefix) {
			p.Set("key", document.Quote(prefix+to))
		}
	})
}

// applyDashboards links dashboards, which must be the project's.
func (s *Service) applyDashboards(ctx context.Context, f *Flag, ids *[]int64) error {
	if ids == nil {
		return nil
	}
	known, err := s.deps.Dashboards.Existing(ctx, f.ProjectID, *ids)
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

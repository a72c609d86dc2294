package flags

import (
	"context"
	"strconv"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval/filters"
	"github.com/guidonhq/guidon/core/flags/sealed"
)

// Get returns one flag of the project, also a deleted one, or NotFound.
func (r *reader) Get(ctx context.Context, project auth.Project, id int64) (*Flag, error) {
	return r.store.flag(ctx, project.ID, id)
}

// List returns the flags that q selects, in its order, and their number without
// its limit.
func (r *reader) List(ctx context.Context, project auth.Project, q Query) ([]*Flag, int, error) {
	return r.store.list(ctx, project.ID, q, r.now())
}

// Tags returns the tags of the flags of the project that are not deleted, each once and in order.
func (r *reader) Tags(ctx context.Context, project auth.Project) ([]string, error) {
	return r.store.tags(ctx, project.ID)
}

// Status returns a flag with its state and the reason of the state, or NotFound.
func (r *reader) Status(ctx context.Context, project auth.Project, id int64) (f *Flag, status Status, reason string, err error) {
	if f, err = r.store.flag(ctx, project.ID, id); err != nil {
		return nil, "", "", err
	}
	if status, reason = f.Status(r.now()); f.Active && !f.Deleted && r.deps.Sets != nil {
		if err := r.deps.Sets.Set(project.ID).Problem(id); err != nil {
			reason = "Flag cannot be evaluated: " + err.Error()
		}
	}
	return f, status, reason, nil
}

// Activity returns entries of the log of a flag, or of all flags if id is 0,
// newest first, and the total number of entries. An unknown flag is NotFound; a
// deleted one keeps its entries.
func (r *reader) Activity(ctx context.Context, project auth.Project, id int64, limit, offset int) ([]activity.Entry, int, error) {
	if id != 0 {
		if _, err := r.store.flag(ctx, project.ID, id); err != nil {
			return nil, 0, err
		}
	}
	return r.activity.Find(ctx, activity.Query{ProjectID: project.ID, Scope: activity.Flag, ItemID: activity.ItemID(id), Limit: limit, Offset: offset})
}

// RemoteConfig returns the payload for the value true of a flag that is not
// deleted, nil if it has none or is disabled. A text that is both a key and an id
// is a key. An encrypted payload is decrypted for a caller who may read it, else
// redacted.
func (r *reader) RemoteConfig(ctx context.Context, who *auth.Principal, project auth.Project, keyOrID string) (*string, error) {
	f, err := r.store.flagByKey(ctx, project.ID, keyOrID)
	if id, isID := strconv.ParseInt(keyOrID, 10, 64); isID == nil && fault.Is(err, fault.NotFound) {
		f, err = r.store.flag(ctx, project.ID, id)
	}
	if err != nil {
		return nil, err
	}
	if f.Deleted {
		return nil, errNotFound
	}
	parsed, unreadable := filters.Parse(f.Filters)
	payload, ok := parsed.Payloads["true"]
	if !ok || unreadable != nil || !f.Active {
		return nil, nil //nolint:nilerr // unreadable filters have no payload
	}
	payload, err = r.deps.Payloads.Read(f.ProjectID, payload, who.SecretKey || who.HasScope(scopeWrite))
	return &payload, err
}

// Show builds the JSON form of flags, with one query each for their creators,
// their cohorts and the rights of the caller.
func (r *reader) Show(ctx context.Context, who *auth.Principal, list ...*Flag) ([]View, error) {
	views := make([]View, 0, len(list))
	if len(list) == 0 {
		return views, nil
	}
	may, err := r.access.CanEdit(ctx, who, list...)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, 0, len(list))
	for _, f := range list {
		ids = append(ids, f.CreatedBy, f.UpdatedBy)
	}
	users, err := r.users(ctx, ids)
	if err != nil {
		return nil, err
	}
	names, err := r.cohortNames(ctx, list)
	if err != nil {
		return nil, err
	}
	now := r.now()
	for _, f := range list {
		v := f.show(document.Shown(sealed.Redact(f.Filters), names), users[f.CreatedBy], may[f.ID], now)
		v.LastModifiedBy = users[f.UpdatedBy]
		views = append(views, v)
	}
	return views, nil
}

// users returns the users that exist.
func (r *reader) users(ctx context.Context, ids []int64) (map[int64]*auth.User, error) {
	found, err := r.deps.Users.UsersByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]*auth.User, len(found))
	for id, u := range found {
		out[id] = &u
	}
	return out, nil
}

// cohortNames returns the names of the cohorts that flags refer to.
func (r *reader) cohortNames(ctx context.Context, list []*Flag) (map[int64]string, error) {
	var ids []int64
	for _, f := range list {
		ids = append(ids, document.CohortReferences(f.Filters)...)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return r.deps.Cohorts.Names(ctx, list[0].ProjectID, ids)
}

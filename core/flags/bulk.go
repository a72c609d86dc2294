package flags

import (
	"context"
	"encoding/json"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/flags/graph"
)

// ByIDs returns the flags of the project with the ids, also deleted ones. Unknown
// ids are left out.
func (r *reader) ByIDs(ctx context.Context, project auth.Project, ids []int64) ([]*Flag, error) {
	return r.store.byIDs(ctx, project.ID, ids)
}

// Dependents returns the flags that are not deleted and whose conditions read a
// flag, by id, or NotFound.
func (r *reader) Dependents(ctx context.Context, project auth.Project, id int64) ([]*Flag, error) {
	if _, err := r.store.flag(ctx, project.ID, id); err != nil {
		return nil, err
	}
	all, err := r.deps.Definitions.Definitions(ctx, project.ID)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, other := range graph.Dependents(all.Flags, id) {
		ids = append(ids, other.ID)
	}
	return r.store.byIDs(ctx, project.ID, ids)
}

// Version returns a flag as it was in a version, or NotFound.
func (r *reader) Version(ctx context.Context, project auth.Project, id, version int64) (*Flag, error) {
	f, err := r.store.flag(ctx, project.ID, id)
	if err != nil {
		return nil, err
	}
	past, v, ok, err := r.store.version(ctx, id, version)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errNotFound
	}
	f.Fields, f.Version, f.UpdatedBy, f.UpdatedAt = past, version, v.By, v.At
	return f, nil
}

// OpenFilters returns the filters of a flag with its payloads in clear, to store them
// for another project. It fails with Unavailable without the key of a payload.
func (r *reader) OpenFilters(f *Flag) (json.RawMessage, error) {
	if !f.EncryptedPayloads {
		return f.Filters, nil
	}
	return r.deps.Payloads.OpenFilters(f.ProjectID, f.Filters, nil)
}

// ByKey returns the flag of a project with a key, or NotFound.
func (r *reader) ByKey(ctx context.Context, projectID int64, key string) (*Flag, error) {
	return r.store.flagByKey(ctx, projectID, key)
}

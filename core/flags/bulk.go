package flags

import (
	"context"
	"slices"

	"github.com/guidonhq/guidon/core/auth"
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
	graph, err := r.store.graph(ctx, project.ID)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for other, ref := range graph {
		if slices.Contains(ref.DependsOn, id) {
			ids = append(ids, other)
		}
	}
	slices.Sort(ids)
	return r.store.byIDs(ctx, project.ID, ids)
}

// Version returns a flag as it was in a version, or NotFound.
func (r *reader) Version(ctx context.Context, project auth.Project, id, version int64) (*Flag, error) {
	f, err := r.store.flag(ctx, project.ID, id)
	if err != nil {
		return nil, err
	}
	past, ok, err := r.store.version(ctx, id, version)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errNotFound
	}
	f.Fields, f.Version = past, version
	f.UpdatedBy, f.UpdatedAt, err = r.store.versionOrigin(ctx, id, version)
	return f, err
}

// ByKey returns the flag of a project with a key, or NotFound.
func (r *reader) ByKey(ctx context.Context, projectID int64, key string) (*Flag, error) {
	return r.store.flagByKey(ctx, projectID, key)
}

package flags

import (
	"context"
	"hash/crc32"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
)

// GroupTypes answers which kinds of groups a project has.
type GroupTypes interface {
	// GroupTypes returns the index of each group type by its name.
	GroupTypes(ctx context.Context, projectID int64) (map[string]int, error)
}

// Projects answers what is known of a project, from memory.
type Projects interface {
	Project(ctx context.Context, id int64) (auth.Project, error)
}

// Definitions is where snapshots come from: flags and cohorts from the store,
// group types and time zones from those who know them.
type Definitions struct {
	store    *Store
	groups   GroupTypes
	projects Projects

	mu   sync.Mutex
	gone map[int64]time.Time // projects that are no more, and since when that is known
}

var _ decide.Source = (*Definitions)(nil)

// NewDefinitions returns the source of snapshots.
func NewDefinitions(store *Store, groups GroupTypes, projects Projects) *Definitions {
	return &Definitions{store: store, groups: groups, projects: projects, gone: map[int64]time.Time{}}
}

// Definitions reads everything a project's flags are decided from. The stamp
// is read first: what is committed meanwhile has a later one.
func (d *Definitions) Definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error) {
	project, err := d.projects.Project(ctx, projectID)
	if err != nil {
		return eval.ProjectDefinitions{}, err
	}
	stamp, err := d.store.stamp(ctx, projectID)
	if err != nil {
		return eval.ProjectDefinitions{}, err
	}
	stored, err := d.store.definitions(ctx, projectID)
	if err != nil {
		return stored, err
	}
	if stored.GroupTypes, err = d.groups.GroupTypes(ctx, projectID); err != nil {
		return stored, err
	}
	stored.Location, stored.Revision = project.Location(), stampOf(stamp, project)
	return stored, nil
}

// Revisions returns a number per project that is another one after each change:
// the store counts them, and a project in another time zone has another one.
// A change of group types is told by Store.Touch.
func (d *Definitions) Revisions(ctx context.Context) (map[int64]int64, error) {
	stamps, err := d.store.stamps(ctx)
	if err != nil {
		return nil, err
	}
	for id, n := range stamps {
		project, err := d.project(ctx, id)
		switch {
		case fault.Is(err, fault.NotFound):
			delete(stamps, id) // it has no flags to decide any more
		case err != nil:
			return nil, err
		default:
			stamps[id] = stampOf(n, project)
		}
	}
	return stamps, nil
}

// project is Projects.Project, which answers at once for a project that is
// there and has to ask around for one that is gone: that is remembered.
func (d *Definitions) project(ctx context.Context, id int64) (auth.Project, error) {
	d.mu.Lock()
	since, gone := d.gone[id]
	d.mu.Unlock()
	if gone && time.Since(since) < time.Minute {
		return auth.Project{}, errNotFound
	}
	project, err := d.projects.Project(ctx, id)
	if fault.Is(err, fault.NotFound) {
		d.mu.Lock()
		d.gone[id] = time.Now()
		d.mu.Unlock()
	}
	return project, err
}

// stampOf makes the store's count one that tells time zones apart. It is never
// 0 for a project that has a count.
func stampOf(count int64, project auth.Project) int64 {
	return count<<32 | int64(crc32.ChecksumIEEE([]byte(project.Timezone)))
}

package flags

import (
	"context"
	"hash/crc32"

	"github.com/guidonhq/guidon/core/auth"
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
}

var _ Source = (*Definitions)(nil)

// NewDefinitions returns the source of snapshots.
func NewDefinitions(store *Store, groups GroupTypes, projects Projects) *Definitions {
	return &Definitions{store: store, groups: groups, projects: projects}
}

// Definitions reads everything a project's flags are decided from.
func (d *Definitions) Definitions(ctx context.Context, projectID int64) (Stored, error) {
	stored, err := d.store.definitions(ctx, projectID)
	if err != nil {
		return stored, err
	}
	if stored.GroupTypes, err = d.groups.GroupTypes(ctx, projectID); err != nil {
		return stored, err
	}
	project, err := d.projects.Project(ctx, projectID)
	if err != nil {
		return stored, err
	}
	stored.Location = project.Location()
	return stored, nil
}

// Stamps returns a number per project that is another one after each change:
// the store counts them, and a project in another time zone has another one.
// A change of group types is told by Store.Touch.
func (d *Definitions) Stamps(ctx context.Context) (map[int64]int64, error) {
	stamps, err := d.store.stamps(ctx)
	if err != nil {
		return nil, err
	}
	for id, n := range stamps {
		if project, err := d.projects.Project(ctx, id); err == nil {
			stamps[id] = n<<32 | int64(crc32.ChecksumIEEE([]byte(project.Timezone)))
		}
	}
	return stamps, nil
}

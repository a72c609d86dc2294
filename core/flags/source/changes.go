package source

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// loaded is the definitions of a project as they were read last.
type loaded struct {
	eval.ProjectDefinitions
	at time.Time // when all of them were read
}

// fullReadAfter is the time after which a change makes Definitions read everything
// again. It corrects what a write without revision.Mark has left out, for example one
// of a server of an older version that works on the same database.
const fullReadAfter = 10 * time.Minute

// manyChanges is the number of changed definitions from which on all are read.
const manyChanges = 500

// usableAt reports whether the changes since then lead to a revision. A revision goes
// back when a backup is restored.
func (l *loaded) usableAt(revision int64) bool {
	return l.Revision > 0 && l.Revision <= revision && time.Since(l.at) < fullReadAfter
}

func (d *Definitions) lastLoaded(projectID int64) (loaded, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.loaded[projectID]
	return l, ok
}

func (d *Definitions) forget(projectID int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.loaded, projectID)
}

// keep keeps definitions for the next read, unless the kept ones are newer.
func (d *Definitions) keep(projectID int64, l loaded) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.loaded[projectID]; !ok || l.at.After(known.at) || l.Revision >= known.Revision && l.at.Equal(known.at) {
		d.loaded[projectID] = l
	}
}

// readChanges returns known with what was written at its revision or later; complete
// is false if that is too much.
func (d *Definitions) readChanges(ctx context.Context, projectID int64, known eval.ProjectDefinitions) (next eval.ProjectDefinitions, complete bool, err error) {
	changed, complete, err := d.revisions.ChangedSince(ctx, projectID, known.Revision, manyChanges)
	if err != nil || !complete {
		return known, false, err
	}
	next = known
	if len(changed.Flags) > 0 {
		flags, err := d.flags.Definitions(ctx, projectID, changed.Flags...)
		if err != nil {
			return next, false, err
		}
		next.Flags = replace(known.Flags, changed.Flags, flags, func(f *eval.Definition) int64 { return f.ID })
	}
	if len(changed.Cohorts) > 0 {
		cohorts, err := d.cohorts.Definitions(ctx, projectID, changed.Cohorts...)
		if err != nil {
			return next, false, err
		}
		next.Cohorts = replace(known.Cohorts, changed.Cohorts, cohorts, func(c *eval.CohortDefinition) int64 { return c.ID })
	}
	next.GroupTypes, err = d.groups.GroupTypes(ctx, projectID)
	return next, err == nil, err
}

// replace returns a copy of a list, which is ordered by id, without the items with the
// given ids and with the new ones.
func replace[T any](list []T, ids []int64, items []T, id func(*T) int64) []T {
	out := make([]T, 0, len(list)+len(items))
	slices.Sort(ids)
	slices.SortFunc(items, func(a, b T) int { return cmp.Compare(id(&a), id(&b)) })
	for _, gone := range ids {
		at, found := slices.BinarySearchFunc(list, gone, func(item T, want int64) int { return cmp.Compare(id(&item), want) })
		out, list = append(out, list[:at]...), list[at:]
		if found {
			list = list[1:]
		}
		if len(items) > 0 && id(&items[0]) == gone {
			out, items = append(out, items[0]), items[1:]
		}
	}
	return append(out, list...)
}

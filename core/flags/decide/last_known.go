package decide

import (
	"context"
	"maps"
	"sync"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// LastKnown is a Source that keeps the definitions it has read in memory. They
// answer while the source cannot be read: at a start without a database, and
// for local evaluation. It is safe for concurrent use.
type LastKnown struct {
	Source
	mu      sync.Mutex
	kept    map[int64]eval.ProjectDefinitions
	changes uint64
}

// NewLastKnown returns an empty LastKnown over source.
func NewLastKnown(source Source) *LastKnown {
	return &LastKnown{Source: source, kept: map[int64]eval.ProjectDefinitions{}}
}

// Definitions reads the definitions of a project and keeps them.
func (l *LastKnown) Definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error) {
	d, err := l.Source.Definitions(ctx, projectID)
	if err != nil {
		return d, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[projectID] = d
	l.changes++
	return d, nil
}

// Kept returns the kept definitions of a project, and whether there are any.
func (l *LastKnown) Kept(projectID int64) (eval.ProjectDefinitions, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.kept[projectID]
	return d, ok
}

// All returns the kept definitions of all projects, and a number that grows when
// they change.
func (l *LastKnown) All() (map[int64]eval.ProjectDefinitions, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.kept), l.changes
}

// Changes returns the number of All.
func (l *LastKnown) Changes() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// Restore keeps definitions from a snapshot on disk for projects that have none.
func (l *LastKnown) Restore(all map[int64]eval.ProjectDefinitions) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, d := range all {
		if _, ok := l.kept[id]; !ok {
			d.Revision = 0
			l.kept[id] = d
		}
	}
}

// Package source reads the definitions that evaluation needs: flags, cohorts, group
// types and the revision of a project. Snapshots compile them, local evaluation
// exports them, and counts of an audience use them.
package source

import (
	"context"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/decide"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/revision"
)

// Flags reads the stored flags of a project.
type Flags interface {
	// Definitions returns the flags that are not deleted, ordered by id: those with
	// the given ids, or all without ids.
	Definitions(ctx context.Context, projectID int64, ids ...int64) ([]eval.Definition, error)
}

// GroupTypes reads the group types of a project.
type GroupTypes interface {
	// GroupTypes returns the index of each group type by its name.
	GroupTypes(ctx context.Context, projectID int64) (map[string]int, error)
}

// Projects reads projects from memory.
type Projects interface {
	Project(ctx context.Context, id int64) (auth.Project, error)
}

// Definitions is the source of snapshots: flags and cohorts from the database,
// group types from persons, and the existence of projects from auth.
type Definitions struct {
	flags     Flags
	cohorts   *cohorts.Store
	revisions *revision.Store
	groups    GroupTypes
	projects  Projects

	mu      sync.Mutex
	missing map[int64]time.Time // projects that do not exist, and when that was found
	loaded  map[int64]loaded    // by project
}

var errNoProject = fault.New(fault.NotFound, "not_found", "Not found.")

var _ decide.Source = (*Definitions)(nil)

// New returns the source of snapshots.
func New(flags Flags, c *cohorts.Store, revisions *revision.Store, groups GroupTypes, projects Projects) *Definitions {
	return &Definitions{flags: flags, cohorts: c, revisions: revisions, groups: groups, projects: projects, missing: map[int64]time.Time{}, loaded: map[int64]loaded{}}
}

// Definitions reads everything that the evaluation of a project's flags needs. It
// reads the revision first: a change that commits during the read has a later one. Of
// a project that it has read before it reads what was written since. The caller must
// not change the result.
func (d *Definitions) Definitions(ctx context.Context, projectID int64) (eval.ProjectDefinitions, error) {
	if _, err := d.projects.Project(ctx, projectID); err != nil {
		if fault.Is(err, fault.NotFound) {
			d.forget(projectID)
		}
		return eval.ProjectDefinitions{}, err
	}
	n, err := d.revisions.Of(ctx, projectID)
	if err != nil {
		return eval.ProjectDefinitions{}, err
	}
	l, err := d.load(ctx, projectID, n)
	if err == nil && !d.revisions.InTransaction(ctx) { // a transaction may be rolled back
		d.keep(projectID, l)
	}
	return l.ProjectDefinitions, err
}

// load reads the definitions of a project at a revision: what was written since they
// were read last, or all of them.
func (d *Definitions) load(ctx context.Context, projectID, revision int64) (loaded, error) {
	if known, ok := d.lastLoaded(projectID); ok && known.usableAt(revision) {
		if known.Revision == revision {
			return known, nil
		}
		next, complete, err := d.readChanges(ctx, projectID, known.ProjectDefinitions)
		if err != nil || complete {
			next.Revision = revision
			return loaded{next, known.at}, err
		}
	}
	all, err := d.readAll(ctx, projectID, revision)
	return loaded{all, time.Now()}, err
}

// readAll reads all definitions of a project.
func (d *Definitions) readAll(ctx context.Context, projectID, revision int64) (out eval.ProjectDefinitions, err error) {
	out.Revision = revision
	if out.Flags, err = d.flags.Definitions(ctx, projectID); err != nil {
		return out, err
	}
	if out.Cohorts, err = d.cohorts.Definitions(ctx, projectID); err != nil {
		return out, err
	}
	out.GroupTypes, err = d.groups.GroupTypes(ctx, projectID)
	return out, err
}

// Revisions returns the revision of each existing project.
func (d *Definitions) Revisions(ctx context.Context) (map[int64]int64, error) {
	revisions, err := d.revisions.All(ctx)
	if err != nil {
		return nil, err
	}
	for id := range revisions {
		switch err := d.checkProject(ctx, id); {
		case fault.Is(err, fault.NotFound):
			delete(revisions, id)
		case err != nil:
			return nil, err
		}
	}
	return revisions, nil
}

// checkProject fails with NotFound for a project that does not exist. It remembers
// missing projects: Projects answers for an existing project from memory and for a
// missing one from the database.
func (d *Definitions) checkProject(ctx context.Context, id int64) error {
	d.mu.Lock()
	since, missing := d.missing[id]
	d.mu.Unlock()
	if missing && time.Since(since) < time.Minute {
		return errNoProject
	}
	_, err := d.projects.Project(ctx, id)
	if fault.Is(err, fault.NotFound) {
		d.mu.Lock()
		d.missing[id] = time.Now()
		d.mu.Unlock()
	}
	return err
}

package cohorts

import (
	"context"
	"slices"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/persons"
)

// Persons returns persons in a cohort, in the order of their creation. Listed
// distinct ids without a person are left out. A dynamic cohort is evaluated for
// the stored persons within the time budget of a count, so that the result may be
// incomplete with fewer persons than the limit, or none; a further call continues
// at its After. It fails with NotFound, also for a deleted cohort.
func (s *Service) Persons(ctx context.Context, project auth.Project, id int64, q audience.Query) (audience.Selection, error) {
	c, err := s.store.cohort(ctx, project.ID, id)
	switch {
	case err != nil:
		return audience.Selection{}, err
	case c.Deleted:
		return audience.Selection{}, errNotFound
	case !c.Static:
		return s.deps.Counter.SelectCohort(ctx, project.ID, id, q)
	}
	return s.listedPersons(ctx, c, q)
}

// listedPersons returns persons whom a static cohort lists.
func (s *Service) listedPersons(ctx context.Context, c *Cohort, q audience.Query) (audience.Selection, error) {
	ids, err := s.store.personIDs(ctx, c.ProjectID, c.ID, q)
	if err != nil {
		return audience.Selection{}, err
	}
	out := audience.Selection{Skipped: q.Skip, After: q.After, Complete: len(ids) <= q.Limit}
	out.Persons, err = s.deps.People.ByIDs(ctx, c.ProjectID, ids[:min(len(ids), q.Limit)])
	if err != nil {
		return audience.Selection{}, err
	}
	slices.SortFunc(out.Persons, func(a, b persons.Person) int { return a.Position().Compare(b.Position()) })
	if n := len(out.Persons); n > 0 {
		out.After = out.Persons[n-1].Position()
	}
	return out, nil
}

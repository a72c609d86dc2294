package flags

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/rules"
)

// CohortInput is what a caller wrote about a cohort. A nil field was not sent.
type CohortInput struct {
	Name        *string
	Description *string
	Filters     json.RawMessage
	Static      *bool
	Deleted     *bool
	Add         []string // distinct ids to list in a static cohort
	Remove      []string // distinct ids to take off it
}

// Cohorts lists a page of the project's cohorts, newest first, and how many
// there are. search is a part of the name.
func (s *Service) Cohorts(ctx context.Context, project auth.Project, search string, limit, offset int) ([]*Cohort, int, error) {
	return s.store.cohorts(ctx, project.ID, search, limit, offset)
}

// Cohort returns a cohort, deleted ones too, or NotFound.
func (s *Service) Cohort(ctx context.Context, project auth.Project, id int64) (*Cohort, error) {
	return s.store.cohort(ctx, project.ID, id)
}

// CreateCohort makes a cohort and counts its people. The error is the first
// broken rule, an Invalid fault.
func (s *Service) CreateCohort(ctx context.Context, who *auth.Principal, project auth.Project, in CohortInput) (*Cohort, error) {
	if in.Name == nil {
		return nil, fault.Field("name", "required", "This field is required.")
	}
	now := s.clock()
	c := &Cohort{ProjectID: project.ID, Filters: json.RawMessage("{}"), CreatedBy: who.User.ID, CreatedAt: now, UpdatedAt: now, Version: 1}
	c.Static = in.Static != nil && *in.Static
	if !c.Static && in.Filters == nil {
		return nil, fault.Field("filters", "required", "This field is required.")
	}
	err := s.change(ctx, project.ID, func(ctx context.Context) error {
		if err := s.applyCohort(ctx, c, in); err != nil {
			return err
		}
		if err := s.store.insertCohort(ctx, c); err != nil {
			return err
		}
		if err := s.applyMembers(ctx, c, in); err != nil {
			return err
		}
		e := activity.NewEntry(who, project.ID, activity.Cohort, c.ID, activity.Created, now)
		e.Detail.Name = c.Name
		return s.activity.Add(ctx, e)
	})
	if err != nil {
		return nil, err
	}
	return s.counted(ctx, project, c), nil
}

// UpdateCohort changes a cohort. It fails with NotFound, and with Invalid for
// the first broken rule; a cohort that flags or other cohorts use cannot be
// deleted.
func (s *Service) UpdateCohort(ctx context.Context, who *auth.Principal, project auth.Project, id int64, in CohortInput) (*Cohort, error) {
	var c *Cohort
	err := s.change(ctx, project.ID, func(ctx context.Context) (err error) {
		if c, err = s.store.cohort(ctx, project.ID, id); err != nil {
			return err
		}
		before := *c
		if err := s.applyCohort(ctx, c, in); err != nil {
			return err
		}
		if err := s.applyMembers(ctx, c, in); err != nil {
			return err
		}
		return s.saveCohort(ctx, who, &before, c)
	})
	if err != nil {
		return nil, err
	}
	if c.Deleted {
		return c, nil
	}
	return s.counted(ctx, project, c), nil
}

func (s *Service) saveCohort(ctx context.Context, who *auth.Principal, before, c *Cohort) error {
	changes := activity.Diff(activity.Cohort, before.state(), c.state())
	if len(changes) == 0 {
		return nil
	}
	c.UpdatedAt, c.Version = s.clock(), before.Version+1
	if err := s.store.updateCohort(ctx, c); err != nil {
		return err
	}
	e := activity.NewEntry(who, c.ProjectID, activity.Cohort, c.ID, activity.Updated, c.UpdatedAt)
	e.Detail.Name, e.Detail.Changes = c.Name, changes
	return s.activity.Add(ctx, e)
}

// applyCohort puts the fields of in into c under the write rules.
func (s *Service) applyCohort(ctx context.Context, c *Cohort, in CohortInput) error {
	if in.Name != nil {
		c.Name = *in.Name
	}
	if in.Description != nil {
		c.Description = *in.Description
	}
	if in.Static != nil && *in.Static != c.Static {
		return fault.Field("is_static", rules.CodeInvalid, "A cohort stays static or dynamic. Make another one instead.")
	}
	if in.Filters != nil && !c.Static {
		refs, trees, err := s.store.cohortRefs(ctx, c.ProjectID)
		if err != nil {
			return err
		}
		if c.Filters, err = rules.CheckCohort(in.Filters, c.ID, trees, rules.References{Cohorts: refs, Operators: s.deps.Operators}, s.cfg.Limits()); err != nil {
			return err
		}
	}
	if in.Deleted != nil && *in.Deleted && !c.Deleted {
		if err := s.unused(ctx, c); err != nil {
			return err
		}
	}
	if in.Deleted != nil {
		c.Deleted = *in.Deleted
	}
	return nil
}

// applyMembers changes the list of a static cohort.
func (s *Service) applyMembers(ctx context.Context, c *Cohort, in CohortInput) error {
	if len(in.Add) == 0 && len(in.Remove) == 0 {
		return nil
	}
	if !c.Static {
		return fault.Field("distinct_ids", rules.CodeInvalid, "Only a static cohort lists people. This one is computed from its filters.")
	}
	if err := s.store.removeMembers(ctx, c.ProjectID, c.ID, in.Remove); err != nil {
		return err
	}
	if err := s.store.addMembers(ctx, c.ProjectID, c.ID, in.Add); err != nil {
		return err
	}
	n, err := s.store.members(ctx, c.ID)
	if err == nil && n > int64(s.cfg.CohortMembers) {
		return fault.Fieldf("distinct_ids", rules.CodeInvalid, "A static cohort lists at most %d people.", s.cfg.CohortMembers)
	}
	return err
}

// unused refuses to take a cohort away from what is made with it.
func (s *Service) unused(ctx context.Context, c *Cohort) error {
	names, err := s.store.usersOfCohort(ctx, c.ProjectID, c.ID)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fault.Newf(fault.Invalid, rules.CodeInvalid, "This cohort cannot be deleted because it is used by %s.", firstFew(names))
	}
	return nil
}

// counted counts the people of c anew. A count that fails is left for the
// next time: the cohort itself is stored.
func (s *Service) counted(ctx context.Context, project auth.Project, c *Cohort) *Cohort {
	a, err := s.audience(ctx, project, cohortCondition(c.ID), nil)
	if err != nil {
		return c
	}
	at := s.clock()
	if err := s.store.counted(ctx, c.ID, a.Affected, at); err == nil {
		c.People, c.CalculatedAt = &a.Affected, at
	}
	return c
}

// cohortCondition is the properties of a condition set for the cohort's people.
func cohortCondition(id int64) json.RawMessage {
	return json.RawMessage(`[{"key":"id","type":"cohort","operator":"in","value":` + strconv.FormatInt(id, 10) + `}]`)
}

// countFor is how long a count of people is shown before it is made anew.
const countFor = 5 * time.Minute

// FreshCohort is Cohort with a count of people that is not old.
func (s *Service) FreshCohort(ctx context.Context, project auth.Project, id int64) (*Cohort, error) {
	c, err := s.store.cohort(ctx, project.ID, id)
	if err != nil || c.Deleted || s.now().Sub(c.CalculatedAt) < countFor {
		return c, err
	}
	return s.counted(ctx, project, c), nil
}

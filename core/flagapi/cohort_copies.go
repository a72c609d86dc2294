package flagapi

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/document"
)

// cohortCopier finds the cohorts of a flag in another project by their names, and
// makes those that are missing.
type cohortCopier struct {
	service  *cohorts.Service
	who      *auth.Principal
	from, to auth.Project
	known    map[int64]int64 // cohorts in the other project, by those of the first
	open     map[int64]bool  // cohorts on the way to the one that is copied
}

func newCohortCopier(s *cohorts.Service, who *auth.Principal, from, to auth.Project) *cohortCopier {
	return &cohortCopier{service: s, who: who, from: from, to: to, known: map[int64]int64{}, open: map[int64]bool{}}
}

// mapFilters returns the filters of a flag with the cohorts of the other project.
func (m *cohortCopier) mapFilters(ctx context.Context, filters json.RawMessage) (json.RawMessage, error) {
	ids := document.CohortReferences(filters)
	for _, id := range ids {
		if err := m.find(ctx, id); err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 {
		return filters, nil
	}
	return document.RewriteProperties(filters, document.ConditionLists, m.rename), nil
}

// rename replaces the cohort in a filter, and removes the name that it shows.
func (m *cohortCopier) rename(p *document.Object) {
	kind, _ := p.Get("type")
	switch name, _ := document.Text(kind); name {
	case "cohort", "static-cohort", "precalculated-cohort":
	default:
		return
	}
	value, _ := p.Get("value")
	if id, ok := document.Integer(value); ok && m.known[id] != 0 {
		p.Set("value", json.RawMessage(strconv.FormatInt(m.known[id], 10)))
		p.Remove("cohort_name")
	}
}

// find finds or makes the cohort of the other project that stands for a cohort.
func (m *cohortCopier) find(ctx context.Context, id int64) error {
	if m.known[id] != 0 {
		return nil
	}
	c, err := m.service.Get(ctx, m.from, id)
	if fault.Is(err, fault.NotFound) || err == nil && c.Deleted {
		return fault.Newf(fault.Invalid, "does_not_exist", "The flag refers to cohort %d, which does not exist.", id)
	}
	if err != nil {
		return err
	}
	twin, err := m.byName(ctx, c.Name)
	if err != nil || twin != 0 {
		m.known[id] = twin
		return err
	}
	m.known[id], err = m.copy(ctx, c)
	return err
}

// byName returns the oldest cohort of the other project with a name, 0 without one.
func (m *cohortCopier) byName(ctx context.Context, name string) (id int64, err error) {
	list, _, err := m.service.List(ctx, m.to, cohorts.Query{Search: name}, 0, 0)
	for _, c := range list {
		if c.Name == name && (id == 0 || c.ID < id) {
			id = c.ID
		}
	}
	return id, err
}

// copy makes a cohort in the other project, after those that it nests. The list of a
// static cohort names persons of its own project and is not copied.
func (m *cohortCopier) copy(ctx context.Context, c *cohorts.Cohort) (int64, error) {
	if c.Static {
		return 0, fault.Newf(fault.Invalid, "static_cohort",
			"The flag refers to the static cohort %q, which lists persons of its project. Create a cohort with this name in project %d first.", c.Name, m.to.ID)
	}
	tree := document.ReadCohortTree(c.Filters)
	if tree.Behavioural || m.open[c.ID] {
		return 0, fault.Newf(fault.Invalid, "cohort_not_copied", "The cohort %q cannot be copied. Create a cohort with this name in project %d first.", c.Name, m.to.ID)
	}
	m.open[c.ID] = true
	defer delete(m.open, c.ID)
	for _, id := range tree.Cohorts {
		if err := m.find(ctx, id); err != nil {
			return 0, err
		}
	}
	made, err := m.service.Create(ctx, m.who, m.to, cohorts.Input{
		Name: &c.Name, Description: &c.Description, Filters: document.RewriteCohort(c.Filters, m.rename),
	})
	if err != nil {
		return 0, err
	}
	return made.ID, nil
}

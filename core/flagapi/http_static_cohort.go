package flagapi

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/cohorts"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/core/web"
)

const (
	// evaluationTime bounds the time for evaluating a flag for all persons. It leaves
	// time to store them within the time of a request.
	evaluationTime = 15 * time.Second
	selectionPage  = 10_000
	maxCohortName  = 400
)

// staticCohortHTTP makes static cohorts of the persons for whom a flag is on.
type staticCohortHTTP struct {
	service *flags.Service
	cohorts *cohorts.Service
	persons *audience.Counter
}

func (h staticCohortHTTP) routes(g *web.Router) {
	g.Manage(fiber.MethodPost, projectFlagsPath+"/:id/create_static_cohort_for_flag", scopeWrite, h.create)
}

// create makes a cohort that lists the persons for whom the flag is on now.
func (h staticCohortHTTP) create(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	f, err := h.service.Get(c.UserContext(), c.Project, id)
	if err != nil {
		return err
	}
	if err := h.cohorts.MayEdit(c.UserContext(), c.Principal); err != nil {
		return err
	}
	if err := isForPersons(f); err != nil {
		return err
	}
	ids, err := h.enabled(c.UserContext(), c.Project, f.ID)
	if err != nil {
		return err
	}
	static := true
	name := text.EllipsisChars("Users with feature flag "+f.Key+" enabled at "+time.Now().UTC().Format(time.DateTime), maxCohortName)
	made, err := h.cohorts.Create(c.UserContext(), c.Principal, c.Project, cohorts.Input{Name: &name, Static: &static, Add: ids})
	if err != nil {
		return err
	}
	views, err := h.cohorts.Show(c.UserContext(), made)
	if err != nil {
		return err
	}
	c.Status(fiber.StatusCreated)
	return web.JSON(c.Ctx, struct {
		Cohort cohorts.View `json:"cohort"`
	}{views[0]})
}

// isForPersons fails for a flag that is on for no stored person.
func isForPersons(f *flags.Flag) error {
	invalid := func(reason string) error {
		return fault.New(fault.Invalid, "invalid_input", "No cohort can be made of this flag: "+reason)
	}
	switch {
	case f.Deleted:
		return invalid("it is deleted.")
	case !f.Active:
		return invalid("it is not active.")
	case isForGroups(f):
		return invalid("it is for groups.")
	case f.Bucketing == "device_id":
		return invalid("it buckets by device, which is not stored.")
	}
	return nil
}

// isForGroups reports whether all conditions of a flag are for groups.
func isForGroups(f *flags.Flag) bool {
	filters, err := document.Parse(f.Filters)
	if err != nil {
		return false
	}
	_, given := filters.Given("aggregation_group_type_index")
	return given
}

// enabled returns a distinct id of each person for whom a flag is on.
func (h staticCohortHTTP) enabled(ctx context.Context, project auth.Project, flagID int64) ([]string, error) {
	var ids []string
	deadline := time.Now().Add(evaluationTime)
	for q := (audience.Query{Limit: selectionPage}); ; {
		found, err := h.persons.SelectFlag(ctx, project.ID, flagID, q)
		if err != nil {
			return nil, err
		}
		for i := range found.Persons {
			if own := found.Persons[i].DistinctIDs; len(own) > 0 {
				ids = append(ids, own[0])
			}
		}
		switch {
		case found.Unknown > 0:
			return nil, fault.New(fault.Unavailable, "flag_not_computed", "The flag cannot be computed for every person at the moment.")
		case found.Complete:
			return ids, nil
		case time.Now().After(deadline):
			return nil, fault.Newf(fault.Invalid, "too_many_persons", "Evaluating the flag for all persons takes more than %s.", evaluationTime)
		}
		q.After = found.After
	}
}

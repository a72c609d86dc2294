package audience

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/persons"
)

// Query selects persons for whom filters hold.
type Query struct {
	After persons.Position // only persons after it, in the order of creation
	Skip  int              // of those, the first ones that are left out
	Limit int              // the most persons to return, at least 1
}

// Selection is a part of the persons for whom filters hold, in the order of creation.
type Selection struct {
	Persons []persons.Person
	Skipped int
	// Complete is true if no persons for whom the filters hold are left behind
	// those. Otherwise After is the position of the last one that was considered, and
	// a further Query continues there.
	Complete bool
	After    persons.Position
	Unknown  int64 // those whose result could not be computed
}

var errSelected = errors.New("enough persons selected")

// Select returns persons for whom the filters hold. It stops at the limit of q, and
// when the budget of the counter ends: it may return fewer persons, or none,
// without being complete. The filters must pass the write rules; see Condition.
func (c *Counter) Select(ctx context.Context, projectID int64, filters json.RawMessage, q Query) (Selection, error) {
	ctx, waits := scan.WithWaits(ctx)
	n, err := c.newCount(ctx, projectID, filters, nil)
	if err != nil {
		return Selection{}, err
	}
	n.waits = waits
	out := Selection{Persons: []persons.Person{}, After: q.After}
	err = c.deps.Persons.WalkAfter(ctx, projectID, q.After, func(page []persons.Person) error {
		return n.selectFrom(ctx, page, q, &out)
	})
	out.Unknown = n.unknown
	switch {
	case err == nil:
		out.Complete = true
	case !errors.Is(err, errSelected) && !errors.Is(err, errBudgetSpent):
		return Selection{}, err
	}
	return out, nil
}

// selectFrom adds the persons of a page for whom the filters hold. It returns
// errSelected at the first one beyond the limit.
func (n *count) selectFrom(ctx context.Context, page []persons.Person, q Query, out *Selection) error {
	subjects, err := n.subjects(ctx, page)
	if err != nil {
		return err
	}
	subjects, err = n.add(ctx, subjects)
	for i := range subjects {
		switch {
		case !subjects[i].on:
		case out.Skipped < q.Skip:
			out.Skipped++
		case len(out.Persons) == q.Limit:
			return errSelected
		default:
			out.Persons = append(out.Persons, page[i])
		}
		out.After = page[i].Position()
	}
	return err
}

// SelectCohort returns persons in a cohort.
func (c *Counter) SelectCohort(ctx context.Context, projectID, cohortID int64, q Query) (Selection, error) {
	return c.Select(ctx, projectID, inCohort(cohortID), q)
}

// SelectFlag returns persons for whom a flag is on, with any variant. A person is
// bucketed by the first distinct id.
func (c *Counter) SelectFlag(ctx context.Context, projectID, flagID int64, q Query) (Selection, error) {
	return c.Select(ctx, projectID, one(`{"key":"`+strconv.FormatInt(flagID, 10)+`","type":"flag","operator":"flag_evaluates_to","value":true}`), q)
}

// inCohort returns filters that hold for the persons in a cohort.
func inCohort(cohortID int64) json.RawMessage {
	return one(`{"key":"id","type":"cohort","operator":"in","value":` + strconv.FormatInt(cohortID, 10) + `}`)
}

// one returns filters with one property.
func one(property string) json.RawMessage {
	return Condition(json.RawMessage("["+property+"]"), nil)
}

package cohorts

import (
	"context"
	"encoding/json"
	"time"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/audience"
	"github.com/guidonhq/guidon/core/flags/document"
	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/revision"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/persons"
)

// Users reads the creators of cohorts.
type Users interface {
	// UsersByID returns the users that exist.
	UsersByID(ctx context.Context, ids []int64) (map[int64]auth.User, error)
}

// Flags reads the flags that use cohorts.
type Flags interface {
	// FlagsUsingCohort returns the keys of the flags that use a cohort and are not
	// deleted.
	FlagsUsingCohort(ctx context.Context, projectID, cohortID int64) ([]string, error)
}

// Access decides who may change cohorts.
type Access interface {
	// RequireEditor fails with Forbidden unless the caller may edit all flags.
	RequireEditor(ctx context.Context, who *auth.Principal) error
}

// Counter counts and lists the persons in a cohort.
type Counter interface {
	CountCohort(ctx context.Context, projectID, cohortID int64) (int64, error)
	// SelectCohort evaluates the cohort for stored persons. It may stop before it is
	// complete.
	SelectCohort(ctx context.Context, projectID, cohortID int64, q audience.Query) (audience.Selection, error)
}

// People reads persons.
type People interface {
	// ByIDs returns the persons that exist, in any order.
	ByIDs(ctx context.Context, projectID int64, ids []int64) ([]persons.Person, error)
}

// Sets returns the compiled flags and cohorts of a project, never nil.
type Sets interface {
	Set(projectID int64) *eval.Set
}

// Config bounds cohorts.
type Config struct {
	rules.Limits
	Members int // the most distinct ids that a static cohort may list
}

// Dependencies are what the service uses. Nil Now uses the clock.
type Dependencies struct {
	Revisions *revision.Writer
	Activity  *activity.Log
	Users     Users
	Access    Access
	Flags     Flags
	Counter   Counter
	People    People
	Operators match.Registry // nil knows no operators of plugins
	Sets      Sets           // the flags and cohorts in memory; nil is none
	Now       func() time.Time
}

// Service creates, changes and counts cohorts. Every change is one transaction
// with its entry in the activity log, and is visible in the memory of this
// process when the call returns. It is safe for concurrent use.
type Service struct {
	store   *Store
	deps    Dependencies
	cfg     Config
	readers []reader
}

// reader is another feature that reads cohorts.
type reader struct {
	kind  string
	names func(ctx context.Context, projectID, cohortID int64) ([]string, error)
}

// UsedBy adds a feature that reads cohorts: a cohort that one of its objects uses
// cannot be deleted. kind is the word for such an object, and names returns the
// names of those that use a cohort. It must be called before the first request.
func (s *Service) UsedBy(kind string, names func(ctx context.Context, projectID, cohortID int64) ([]string, error)) {
	s.readers = append(s.readers, reader{kind, names})
}

// NewService returns the service over store.
func NewService(cfg Config, store *Store, deps Dependencies) *Service {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	return &Service{store: store, deps: deps, cfg: cfg}
}

// now returns the time as the store keeps it: microseconds, UTC.
func (s *Service) now() time.Time { return s.deps.Now().UTC().Truncate(time.Microsecond) }

// List returns a page of the cohorts that are not deleted, newest first, and the
// total.
func (s *Service) List(ctx context.Context, project auth.Project, q Query, limit, offset int) ([]*Cohort, int, error) {
	return s.store.list(ctx, project.ID, q, limit, offset)
}

// Get returns a cohort, deleted ones too, or NotFound.
func (s *Service) Get(ctx context.Context, project auth.Project, id int64) (*Cohort, error) {
	return s.store.cohort(ctx, project.ID, id)
}

// MayEdit returns nil if the caller may create and change cohorts, Forbidden
// otherwise: any flag may use a cohort, so that needs the right to edit all
// flags.
func (s *Service) MayEdit(ctx context.Context, who *auth.Principal) error {
	return s.deps.Access.RequireEditor(ctx, who)
}

// Create stores a cohort and counts its persons. It fails with Forbidden, see
// MayEdit, and with Invalid for the first broken rule.
func (s *Service) Create(ctx context.Context, who *auth.Principal, project auth.Project, in Input) (*Cohort, error) {
	if in.Name == nil {
		return nil, fault.Field("name", "required", "This field is required.")
	}
	now := s.now()
	c := &Cohort{ProjectID: project.ID, Fields: Fields{Filters: json.RawMessage("{}")}, CreatedBy: who.User.ID, CreatedAt: now, UpdatedAt: now, Version: 1}
	c.Static = in.Static != nil && *in.Static
	if !c.Static && in.Filters == nil {
		return nil, fault.Field("filters", "required", "This field is required.")
	}
	in.checked = s.check(ctx, project.ID, 0, in)
	err := s.deps.Revisions.ChangeAndRefresh(ctx, project.ID, func(ctx context.Context) error {
		if err := s.MayEdit(ctx, who); err != nil {
			return err
		}
		if err := s.apply(ctx, c, in); err != nil {
			return err
		}
		if err := s.store.insert(ctx, c); err != nil {
			return err
		}
		if _, err := s.applyMembers(ctx, c, in); err != nil {
			return err
		}
		e := activity.NewEntry(who, project.ID, activity.Cohort, c.ID, activity.Created, now)
		e.Detail.Name = c.Name
		return s.deps.Activity.Add(ctx, e)
	})
	if err != nil {
		return nil, err
	}
	return s.recount(ctx, c), nil
}

// Update changes a cohort. It fails with NotFound; with Forbidden, see MayEdit;
// and with Invalid for the first broken rule; a cohort that flags, other cohorts or
// objects of other features use cannot be deleted.
func (s *Service) Update(ctx context.Context, who *auth.Principal, project auth.Project, id int64, in Input) (*Cohort, error) {
	var c *Cohort
	in.checked = s.check(ctx, project.ID, id, in)
	err := s.deps.Revisions.ChangeAndRefresh(ctx, project.ID, func(ctx context.Context) (err error) {
		if c, err = s.store.cohort(ctx, project.ID, id); err != nil {
			return err
		}
		if err := s.MayEdit(ctx, who); err != nil {
			return err
		}
		before := *c
		if err := s.apply(ctx, c, in); err != nil {
			return err
		}
		moved, err := s.applyMembers(ctx, c, in)
		if err != nil {
			return err
		}
		return s.save(ctx, who, &before, c, moved)
	})
	if err != nil {
		return nil, err
	}
	if c.Deleted {
		return c, nil
	}
	return s.recount(ctx, c), nil
}

// save stores c with an activity entry if its fields differ from before. Without an
// entry it records that people were added or removed if moved.
func (s *Service) save(ctx context.Context, who *auth.Principal, before, c *Cohort, moved bool) error {
	changes := activity.Diff(activity.Cohort, before.Fields, c.Fields)
	switch {
	case len(changes) > 0:
	case moved:
		return s.deps.Activity.Touch(ctx, c.ProjectID, activity.Cohort, c.ID, c.Name, s.now())
	default:
		return nil
	}
	c.UpdatedAt, c.Version = s.now(), before.Version+1
	if err := s.store.update(ctx, c); err != nil {
		return err
	}
	e := activity.NewEntry(who, c.ProjectID, activity.Cohort, c.ID, activity.Updated, c.UpdatedAt)
	e.Detail.Name, e.Detail.Changes = c.Name, changes
	return s.deps.Activity.Add(ctx, e)
}

// apply applies the fields of in to c and checks the write rules.
func (s *Service) apply(ctx context.Context, c *Cohort, in Input) error {
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
		if err := s.applyFilters(ctx, c, in.checked); err != nil {
			return err
		}
	}
	if in.Deleted != nil && *in.Deleted && !c.Deleted {
		if err := s.checkUnused(ctx, c); err != nil {
			return err
		}
	}
	if in.Deleted != nil {
		c.Deleted = *in.Deleted
	}
	return nil
}

// check checks the filters of in before the transaction that stores them. id is
// that of the cohort, 0 for a new one.
func (s *Service) check(ctx context.Context, projectID, id int64, in Input) rules.Checked {
	if in.Filters == nil {
		return rules.Checked{}
	}
	cohorts, trees, err := s.store.referencesAndTrees(ctx, projectID)
	if err != nil {
		return rules.Failed(err)
	}
	refs := rules.References{Cohorts: cohorts, Operators: s.deps.Operators}
	if s.deps.Sets != nil {
		refs.Patterns = s.deps.Sets.Set(projectID).Patterns(0, id)
	}
	return rules.CheckedCohort(in.Filters, id, trees, refs, s.cfg.Limits)
}

// applyFilters sets the filters of c if they pass the write rules.
func (s *Service) applyFilters(ctx context.Context, c *Cohort, checked rules.Checked) (err error) {
	var refs rules.References
	var trees map[int64]document.CohortTree
	if checked.Linked() {
		if refs.Cohorts, trees, err = s.store.referencesAndTrees(ctx, c.ProjectID); err != nil {
			return err
		}
	}
	text, err := checked.Text(refs, trees)
	if err == nil {
		c.Filters = text
	}
	return err
}

// applyMembers changes the list of a static cohort, and reports whether it is another
// one.
func (s *Service) applyMembers(ctx context.Context, c *Cohort, in Input) (moved bool, err error) {
	if len(in.Add) == 0 && len(in.Remove) == 0 {
		return false, nil
	}
	if !c.Static {
		return false, fault.Field("distinct_ids", rules.CodeInvalid, "Only a static cohort lists people. This one is computed from its filters.")
	}
	removed, err := s.store.removeMembers(ctx, c.ProjectID, c.ID, in.Remove)
	if err != nil {
		return false, err
	}
	added, err := s.store.addMembers(ctx, c.ProjectID, c.ID, in.Add)
	if err != nil {
		return false, err
	}
	n, err := s.store.countMembers(ctx, c.ID)
	if err == nil && n > int64(s.cfg.Members) {
		err = fault.Fieldf("distinct_ids", rules.CodeInvalid, "A static cohort lists at most %d people.", s.cfg.Members)
	}
	return removed+added > 0, err
}

// checkUnused fails if flags, other cohorts or objects of other features use c.
func (s *Service) checkUnused(ctx context.Context, c *Cohort) error {
	flags, err := s.deps.Flags.FlagsUsingCohort(ctx, c.ProjectID, c.ID)
	if err != nil {
		return err
	}
	cohorts, err := s.store.usedBy(ctx, c.ProjectID, c.ID)
	if err != nil {
		return err
	}
	var names []string
	for _, key := range flags {
		names = append(names, "flag "+key)
	}
	for _, name := range cohorts {
		names = append(names, "cohort "+name)
	}
	for _, r := range s.readers {
		found, err := r.names(ctx, c.ProjectID, c.ID)
		if err != nil {
			return err
		}
		for _, name := range found {
			names = append(names, r.kind+" "+name)
		}
	}
	if len(names) > 0 {
		return fault.Newf(fault.Invalid, rules.CodeInvalid, "This cohort cannot be deleted because it is used by %s.", rules.FirstNames(names))
	}
	return nil
}

// recount counts the persons of c again. A failed count leaves the old one: the
// cohort itself is stored.
func (s *Service) recount(ctx context.Context, c *Cohort) *Cohort {
	n, err := s.deps.Counter.CountCohort(ctx, c.ProjectID, c.ID)
	if err != nil {
		return c
	}
	at := s.now()
	if err := s.store.storeCount(ctx, c.ID, n, at); err == nil {
		c.People, c.CalculatedAt = &n, at
	}
	return c
}

// countTTL is the age after which a count is repeated.
const countTTL = 5 * time.Minute

// GetCounted is Get with a count that is not older than countTTL.
func (s *Service) GetCounted(ctx context.Context, project auth.Project, id int64) (*Cohort, error) {
	c, err := s.store.cohort(ctx, project.ID, id)
	if err != nil || c.Deleted || s.deps.Now().Sub(c.CalculatedAt) < countTTL {
		return c, err
	}
	return s.recount(ctx, c), nil
}

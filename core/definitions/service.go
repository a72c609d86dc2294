package definitions

import (
	"context"
	"fmt"
	"time"
)

// Order is the order of a list.
type Order int

// The orders.
const (
	ByName Order = iota
	ByLastSeen
	ByCreated
	ByVerified
	ByType
)

// Filter selects definitions of a project. Zero fields except Kind do not
// filter.
type Filter struct {
	Kind       Kind
	GroupIndex *int     // of group properties
	Search     string   // words that the name contains, case-insensitive
	Names      []string // only these; nil is all
	Without    []string // excluded names
	Types      []string // with one of these types
	Numeric    *bool
	Verified   *bool
	Hidden     *bool
	System     *bool // names that start with a dollar sign
	Flags      *bool // $feature/…
	Order      Order
	Descending bool
}

// Find returns a page of the definitions of a project, and their total number.
func (s *Service) Find(ctx context.Context, projectID int64, f Filter, limit, offset int) ([]Definition, int, error) {
	list, count, err := s.store.list(ctx, projectID, &f, limit, offset)
	if err != nil {
		return nil, 0, fmt.Errorf("list definitions: %w", err)
	}
	return list, count, nil
}

// EventByID returns the definition of an event name, or NotFound.
func (s *Service) EventByID(ctx context.Context, projectID int64, id string) (Definition, error) {
	return s.store.get(ctx, projectID, true, id, "")
}

// EventByName returns the definition of an event name, or NotFound.
func (s *Service) EventByName(ctx context.Context, projectID int64, name string) (Definition, error) {
	return s.store.get(ctx, projectID, true, "", name)
}

// PropertyByID returns the definition of a property, or NotFound.
func (s *Service) PropertyByID(ctx context.Context, projectID int64, id string) (Definition, error) {
	return s.store.get(ctx, projectID, false, id, "")
}

// Change is an update of a definition; nil leaves a field unchanged.
type Change struct {
	Description  *string
	Tags         *[]string
	Hidden       *bool
	Verified     *bool
	PropertyType *string
}

// Annotate updates the annotation of d in the name of a user, and returns the
// updated definition.
func (s *Service) Annotate(ctx context.Context, d Definition, by int64, c Change) (Definition, error) {
	now := time.Now().UTC()
	if c.Description != nil {
		d.Description = *c.Description
	}
	if c.Tags != nil {
		d.Tags = *c.Tags
	}
	if c.Hidden != nil {
		d.Hidden = *c.Hidden
	}
	if c.PropertyType != nil {
		d.PropertyType = *c.PropertyType
	}
	switch {
	case c.Verified == nil || *c.Verified == d.Verified:
	case *c.Verified:
		d.Verified, d.VerifiedAt, d.VerifiedBy = true, now, by
	default:
		d.Verified, d.VerifiedAt, d.VerifiedBy = false, time.Time{}, 0
	}
	d.UpdatedAt, d.UpdatedBy = now, by
	if err := s.store.annotate(ctx, &d); err != nil {
		return d, fmt.Errorf("change definition %s: %w", d.ID, err)
	}
	return d, nil
}

// Remove deletes a definition. The next occurrence of its name creates it
// again, without annotation.
func (s *Service) Remove(ctx context.Context, projectID int64, d Definition) error {
	if err := s.store.remove(ctx, d.ID); err != nil {
		return fmt.Errorf("remove definition %s: %w", d.ID, err)
	}
	s.store.db.AfterCommit(ctx, func() { s.dropCached(projectID) })
	return nil
}

// ForgetGroups deletes the properties of group types that the project no
// longer has. It joins the transaction in ctx.
func (s *Service) ForgetGroups(ctx context.Context, projectID int64) error {
	if s.deps.Groups == nil {
		return nil
	}
	indexes, err := s.deps.Groups.GroupTypes(ctx, projectID)
	if err != nil {
		return fmt.Errorf("look for group types: %w", err)
	}
	kept := make([]int, 0, len(indexes))
	for _, i := range indexes {
		kept = append(kept, i)
	}
	if err := s.store.removeGroups(ctx, projectID, kept); err != nil {
		return fmt.Errorf("remove the properties of groups: %w", err)
	}
	s.store.db.AfterCommit(ctx, func() { s.dropCached(projectID) })
	return nil
}

func (s *Service) dropCached(projectID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.drop(projectID)
}

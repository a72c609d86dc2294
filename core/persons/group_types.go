package persons

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/core/fault"
)

// ListGroupTypes returns the group types of a project by their slots.
func (s *Service) ListGroupTypes(ctx context.Context, projectID int64) ([]GroupType, error) {
	types, err := s.store.groupTypes(ctx, projectID)
	if err != nil {
		return nil, fmt.Errorf("list group types: %w", err)
	}
	return types, nil
}

// OnGroupTypes adds a hook that is told when a project's group types were
// renamed or deleted, inside that transaction. All hooks must be added before
// the first change.
func (s *Service) OnGroupTypes(h func(ctx context.Context, projectID int64) error) {
	s.typeHooks = append(s.typeHooks, h)
}

var errNoType = fault.New(fault.NotFound, "not_found", "Not found.")

// RenameGroupType changes the name of a group type, by which events mean it,
// or how people call one and several of it; nil leaves one as it is, and an
// empty text takes one of the latter two away. It fails with NotFound, or
// Invalid when another type of the project has the name.
func (s *Service) RenameGroupType(ctx context.Context, projectID int64, index int, name, singular, plural *string) (GroupType, error) {
	var out GroupType
	err := s.changeTypes(ctx, projectID, index, func(ctx context.Context, types []GroupType, at int) error {
		for i := range types {
			if name != nil && i != at && types[i].Name == *name {
				return fault.Field("group_type", "unique", "Another group type of this project has this name.")
			}
		}
		out = types[at]
		if name != nil {
			out.Name = *name
		}
		out.Singular, out.Plural = renamed(out.Singular, singular), renamed(out.Plural, plural)
		return s.store.renameGroupType(ctx, projectID, &out)
	})
	return out, err
}

func renamed(from, to *string) *string {
	switch {
	case to == nil:
		return from
	case *to == "":
		return nil
	}
	return to
}

// DeleteGroupType deletes a group type with all its groups; its slot is free
// for another type. It fails with NotFound.
func (s *Service) DeleteGroupType(ctx context.Context, projectID int64, index int) error {
	return s.changeTypes(ctx, projectID, index, func(ctx context.Context, _ []GroupType, _ int) error {
		return s.store.deleteGroupType(ctx, projectID, index)
	})
}

// changeTypes runs change on the type in slot index and tells everybody.
func (s *Service) changeTypes(ctx context.Context, projectID int64, index int, change func(ctx context.Context, types []GroupType, at int) error) error {
	return s.db.Tx(ctx, func(ctx context.Context) error {
		types, err := s.store.groupTypes(ctx, projectID)
		if err != nil {
			return fmt.Errorf("read group types: %w", err)
		}
		for at := range types {
			if types[at].Index != index {
				continue
			}
			if err := change(ctx, types, at); err != nil {
				return fmt.Errorf("change group type %d: %w", index, err)
			}
			for _, hook := range s.typeHooks {
				if err := hook(ctx, projectID); err != nil {
					return fmt.Errorf("tell of changed group types: %w", err)
				}
			}
			s.db.AfterCommit(ctx, func() { s.cache.clear(projectID) })
			return nil
		}
		return errNoType
	})
}

// FindGroups returns a page of the groups of a type, newest first, and how
// many there are in all. search is a part of the key or of the text of a
// property called name, in any case; empty finds all.
func (s *Service) FindGroups(ctx context.Context, projectID int64, index int, search string, limit, offset int) ([]Group, int, error) {
	page, total, err := s.store.findGroups(ctx, projectID, index, search, limit, offset)
	if err != nil {
		return nil, 0, fmt.Errorf("find groups: %w", err)
	}
	return page, total, nil
}

// CountGroups returns how many groups of a type a project has.
func (s *Service) CountGroups(ctx context.Context, projectID int64, index int) (int, error) {
	n, err := s.store.countGroups(ctx, projectID, index, "")
	if err != nil {
		return 0, fmt.Errorf("count groups: %w", err)
	}
	return n, nil
}

// Group returns one group, or NotFound.
func (s *Service) Group(ctx context.Context, projectID int64, index int, key string) (Group, error) {
	found, err := s.store.oneGroup(ctx, projectID, index, key)
	switch {
	case err != nil:
		return Group{}, fmt.Errorf("read group %q: %w", key, err)
	case len(found) == 0:
		return Group{}, errNoType
	}
	return found[0], nil
}

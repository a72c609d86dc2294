package persons

import (
	"context"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/fault"
)

// Groups manages groups and their types. Its methods may be called
// concurrently.
type Groups struct {
	db        *db.DB
	store     *store
	cache     *cache
	typeHooks []func(ctx context.Context, projectID int64) error
}

var errNoGroup = fault.New(fault.NotFound, "not_found", "Not found.")

// ListTypes returns the group types of a project by index.
func (g *Groups) ListTypes(ctx context.Context, projectID int64) ([]GroupType, error) {
	types, err := g.store.groupTypes(ctx, projectID)
	if err != nil {
		return nil, fmt.Errorf("list group types: %w", err)
	}
	return types, nil
}

// OnTypesChanged adds a hook that runs when group types of a project are created,
// renamed or deleted, inside that transaction. All hooks must be added before the
// first change.
func (g *Groups) OnTypesChanged(h func(ctx context.Context, projectID int64) error) {
	g.typeHooks = append(g.typeHooks, h)
}

// RenameType changes the name of a group type, which events use, and its display
// names. nil keeps a name; an empty text removes a display name. It fails with
// NotFound, or with Invalid if another type of the project has the name.
func (g *Groups) RenameType(ctx context.Context, projectID int64, index int, name, singular, plural *string) (GroupType, error) {
	var out GroupType
	err := g.changeTypes(ctx, projectID, index, func(ctx context.Context, types []GroupType, at int) error {
		for i := range types {
			if name != nil && i != at && types[i].Name == *name {
				return fault.Field("group_type", "unique", "Another group type of this project has this name.")
			}
		}
		out = types[at]
		if name != nil {
			out.Name = *name
		}
		out.Singular, out.Plural = changedName(out.Singular, singular), changedName(out.Plural, plural)
		return g.store.renameGroupType(ctx, projectID, &out)
	})
	return out, err
}

func changedName(from, to *string) *string {
	switch {
	case to == nil:
		return from
	case *to == "":
		return nil
	}
	return to
}

var errTypeTaken = fault.New(fault.Conflict, "conflict", "A group type was created at the same time. Send the request again.")

// maxTypes is the number of group types of a project.
const maxTypes = 5

// CreateType adds a group type at the first free index. Events do that, too. It fails
// with Invalid if the project has the type, or has five.
func (g *Groups) CreateType(ctx context.Context, projectID int64, name string, singular, plural *string) (GroupType, error) {
	out := GroupType{Name: name, Singular: changedName(nil, singular), Plural: changedName(nil, plural), CreatedAt: time.Now().UTC().Truncate(time.Microsecond)}
	err := g.db.Tx(ctx, func(ctx context.Context) error {
		types, err := g.store.groupTypes(ctx, projectID)
		if err != nil {
			return fmt.Errorf("read group types: %w", err)
		}
		if len(types) >= maxTypes {
			return fault.Field("group_type", "invalid_input", "A project has at most five group types.")
		}
		for _, t := range types { // by index
			if t.Name == name {
				return fault.Field("group_type", "unique", "Another group type of this project has this name.")
			}
			if t.Index == out.Index {
				out.Index++
			}
		}
		added, err := g.store.addGroupType(ctx, projectID, &out)
		if err != nil {
			return fmt.Errorf("add group type: %w", err)
		}
		if !added {
			return errTypeTaken
		}
		return g.followTypes(ctx, projectID)
	})
	return out, err
}

// followTypes runs the hooks of a change, and forgets the groups in memory after it.
func (g *Groups) followTypes(ctx context.Context, projectID int64) error {
	for _, hook := range g.typeHooks {
		if err := hook(ctx, projectID); err != nil {
			return fmt.Errorf("follow the change of group types: %w", err)
		}
	}
	g.db.AfterCommit(ctx, func() { g.cache.dropGroups(projectID) })
	return nil
}

// DeleteType deletes a group type with all its groups and frees its index. It
// fails with NotFound.
func (g *Groups) DeleteType(ctx context.Context, projectID int64, index int) error {
	return g.changeTypes(ctx, projectID, index, func(ctx context.Context, _ []GroupType, _ int) error {
		return g.store.deleteGroupType(ctx, projectID, index)
	})
}

// changeTypes runs change on the type with the index and then the hooks.
func (g *Groups) changeTypes(ctx context.Context, projectID int64, index int, change func(ctx context.Context, types []GroupType, at int) error) error {
	return g.db.Tx(ctx, func(ctx context.Context) error {
		types, err := g.store.groupTypes(ctx, projectID)
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
			return g.followTypes(ctx, projectID)
		}
		return errNoGroup
	})
}

// Find returns a page of the groups of a type, newest first, and their total
// number. search is a part of the key or of a name property, in any case;
// empty finds all.
func (g *Groups) Find(ctx context.Context, projectID int64, index int, search string, limit, offset int) ([]Group, int, error) {
	var page []Group
	var total int
	find := func(ctx context.Context) (err error) {
		page, total, err = g.store.findGroups(ctx, projectID, index, search, limit, offset)
		return err
	}
	var err error
	if search != "" {
		err = g.db.RunScan(ctx, projectID, find)
	} else {
		err = find(ctx)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("find groups: %w", err)
	}
	return page, total, nil
}

// Count returns the number of groups of a type.
func (g *Groups) Count(ctx context.Context, projectID int64, index int) (int, error) {
	n := 0
	err := g.db.RunScan(ctx, projectID, func(ctx context.Context) (err error) {
		n, err = g.store.countGroups(ctx, projectID, index, "")
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count groups: %w", err)
	}
	return n, nil
}

// Get returns one group, or NotFound.
func (g *Groups) Get(ctx context.Context, projectID int64, index int, key string) (Group, error) {
	found, err := g.store.oneGroup(ctx, projectID, index, key)
	switch {
	case err != nil:
		return Group{}, fmt.Errorf("read group %q: %w", key, err)
	case len(found) == 0:
		return Group{}, errNoGroup
	}
	return found[0], nil
}

// ByKeys returns the groups of a type with these keys that exist, ascending.
func (g *Groups) ByKeys(ctx context.Context, projectID int64, index int, keys []string) ([]Group, error) {
	found, err := g.store.groupsByKeys(ctx, projectID, index, keys)
	if err != nil {
		return nil, fmt.Errorf("read %d groups: %w", len(keys), err)
	}
	return found, nil
}

// Walk calls fn for the groups of a type in pages until fn returns an error,
// which Walk returns. fn must not keep a page. Groups that are created or
// deleted during the walk may be missed; no group is passed twice.
func (g *Groups) Walk(ctx context.Context, projectID int64, index int, fn func(page []Group) error) error {
	return g.db.RunScan(ctx, projectID, func(ctx context.Context) error { return g.walk(ctx, projectID, index, fn) })
}

func (g *Groups) walk(ctx context.Context, projectID int64, index int, fn func(page []Group) error) error {
	after := ""
	for {
		if err := scan.Yield(ctx); err != nil {
			return fmt.Errorf("walk groups: %w", err)
		}
		page, err := g.store.groupsAfter(ctx, projectID, index, after, walkPage)
		if err != nil {
			return fmt.Errorf("walk groups: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		if err := fn(page); err != nil {
			return err
		}
		after = page[len(page)-1].Key
	}
}

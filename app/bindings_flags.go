package app

import (
	"context"

	"github.com/guidonhq/guidon/core/accounts"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/flags"
	"github.com/guidonhq/guidon/core/persons"
)

// population lets flags walk over stored people and groups.
type population struct{ persons *persons.Service }

func (p population) Persons(ctx context.Context, projectID int64, fn func([]flags.Subject) error) error {
	var subjects []flags.Subject
	return p.persons.Walk(ctx, projectID, func(page []persons.Person) error {
		subjects = subjects[:0]
		for i := range page {
			subjects = append(subjects, flags.Subject{ID: page[i].ID, DistinctIDs: page[i].DistinctIDs, Properties: page[i].Properties})
		}
		return fn(subjects)
	})
}

func (p population) Groups(ctx context.Context, projectID int64, index int, fn func([]flags.Subject) error) error {
	var subjects []flags.Subject
	return p.persons.Groups.Walk(ctx, projectID, index, func(page []persons.Group) error {
		subjects = subjects[:0]
		for i := range page {
			subjects = append(subjects, flags.Subject{Key: page[i].Key, Properties: page[i].Properties})
		}
		return fn(subjects)
	})
}

func (p population) Count(ctx context.Context, projectID int64, index *int) (int64, error) {
	if index != nil {
		n, err := p.persons.Groups.Count(ctx, projectID, *index)
		return int64(n), err
	}
	n, err := p.persons.Count(ctx, projectID)
	return int64(n), err
}

// usage lets flags count stored events.
type usage struct{ events *events.Service }

func (u usage) Counts(ctx context.Context, q flags.UsageQuery) ([]flags.Count, error) {
	found, err := u.events.Counts(ctx, events.CountQuery(q))
	counts := make([]flags.Count, len(found))
	for i := range found {
		counts[i] = flags.Count(found[i])
	}
	return counts, err
}

// roleFlags lets accounts name the flags of roles.
type roleFlags struct{ store *flags.Store }

func (r roleFlags) FlagsOfRoles(ctx context.Context, projectIDs []int64, roleIDs []string) (map[string][]accounts.Flag, error) {
	found, err := r.store.FlagsOfRoles(ctx, projectIDs, roleIDs)
	out := make(map[string][]accounts.Flag, len(found))
	for role, names := range found {
		for _, n := range names {
			out[role] = append(out[role], accounts.Flag(n))
		}
	}
	return out, err
}

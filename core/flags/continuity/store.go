package continuity

import (
	"context"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
)

// hashKeyRow is a row of feature_flag_hash_keys.
type hashKeyRow struct {
	bun.BaseModel `bun:"table:feature_flag_hash_keys,alias:h"`

	ProjectID int64
	PersonID  int64  `bun:",pk"`
	FlagKey   string `bun:",pk"`
	HashKey   string
}

// Store keeps hash keys in the database. Methods join the transaction in their
// context. It is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// HashKeys returns the stored hash keys of the persons behind two distinct ids, by
// flag key. If both persons have one, that of distinctID is returned. A non-empty
// anonymousID is first stored as the hash key of both persons for the flagKeys
// that have none yet. A failed write is no error: the hash keys stay unset.
func (s *Store) HashKeys(ctx context.Context, projectID int64, distinctID, anonymousID string, flagKeys []string) (map[string]string, error) {
	ids := []string{distinctID}
	if anonymousID != "" && anonymousID != distinctID {
		ids = append(ids, anonymousID)
	}
	var rows []struct {
		DistinctID string
		PersonID   int64
		FlagKey    *string
		HashKey    *string
	}
	// Raw: one statement of two tables on the path of decide; a model would map the
	// nullable columns of the join to a third row type.
	err := s.db.Lookup(ctx).NewRaw(
		`SELECT d.distinct_id, d.person_id, h.flag_key, h.hash_key FROM person_distinct_ids AS d
		 LEFT JOIN feature_flag_hash_keys AS h ON h.person_id = d.person_id
		 WHERE d.project_id = ? AND d.distinct_id IN (?)`, projectID, bun.List(ids)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read hash keys: %w", err)
	}
	stored := map[string]string{}
	var persons []int64
	for _, r := range rows {
		if !slices.Contains(persons, r.PersonID) {
			persons = append(persons, r.PersonID)
		}
		if r.FlagKey == nil {
			continue
		}
		if _, known := stored[*r.FlagKey]; !known || r.DistinctID == distinctID {
			stored[*r.FlagKey] = *r.HashKey
		}
	}
	if anonymousID != "" && !s.db.ReadOnly {
		s.addHashKeys(ctx, projectID, persons, anonymousID, flagKeys, stored)
	}
	return stored, nil
}

// addHashKeys stores a hash key for the flags without one, and adds it to stored.
func (s *Store) addHashKeys(ctx context.Context, projectID int64, persons []int64, hashKey string, flagKeys []string, stored map[string]string) {
	var rows []hashKeyRow
	for _, flag := range flagKeys {
		if _, known := stored[flag]; known {
			continue
		}
		for _, person := range persons {
			rows = append(rows, hashKeyRow{ProjectID: projectID, PersonID: person, FlagKey: flag, HashKey: hashKey})
		}
	}
	if len(rows) == 0 {
		return
	}
	if _, err := s.db.Write(ctx).NewInsert().Model(&rows).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
		return
	}
	for _, r := range rows {
		stored[r.FlagKey] = hashKey
	}
}

// MergePersons moves the hash keys of the persons from to the persons into, in the order of
// the merges. Existing hash keys of a person in into stay. It joins the transaction of the
// merges.
func (s *Store) MergePersons(ctx context.Context, projectID int64, from, into []int64) error {
	var owners []int64
	err := s.db.Read(ctx).NewSelect().Model((*hashKeyRow)(nil)).ColumnExpr("DISTINCT person_id").Where("person_id IN (?)", bun.List(from)).Scan(ctx, &owners)
	if err != nil {
		return fmt.Errorf("look for hash keys of merged persons: %w", err)
	}
	for i := range from {
		if !slices.Contains(owners, from[i]) {
			continue // as most of them
		}
		if err := s.mergePerson(ctx, projectID, from[i], into[i]); err != nil {
			return err
		}
		owners = append(owners, into[i])
	}
	return nil
}

func (s *Store) mergePerson(ctx context.Context, projectID, from, into int64) error {
	// Raw: an insert from a select that ignores conflicts.
	_, err := s.db.Write(ctx).NewRaw(
		`INSERT INTO feature_flag_hash_keys (project_id, person_id, flag_key, hash_key)
		 SELECT project_id, ?, flag_key, hash_key FROM feature_flag_hash_keys WHERE project_id = ? AND person_id = ?
		 ON CONFLICT DO NOTHING`, into, projectID, from).Exec(ctx)
	if err == nil {
		_, err = s.db.Write(ctx).NewDelete().Model((*hashKeyRow)(nil)).Where("person_id = ?", from).Exec(ctx)
	}
	if err != nil {
		return fmt.Errorf("move hash keys of person %d: %w", from, err)
	}
	return nil
}

// RenameFlag renames the key of a flag in the hash keys.
func (s *Store) RenameFlag(ctx context.Context, projectID int64, from, to string) error {
	_, err := s.db.Write(ctx).NewUpdate().Model((*hashKeyRow)(nil)).Set("flag_key = ?", to).
		Where("project_id = ? AND flag_key = ?", projectID, from).Exec(ctx)
	if err != nil {
		return fmt.Errorf("rename hash keys of flag %q: %w", from, err)
	}
	return nil
}

// HashKeysOf returns the hash keys of each person by flag key.
func (s *Store) HashKeysOf(ctx context.Context, projectID int64, personIDs []int64) (map[int64]map[string]string, error) {
	var rows []hashKeyRow
	if err := s.db.Read(ctx).NewSelect().Model(&rows).Where("project_id = ? AND person_id IN (?)", projectID, bun.List(personIDs)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read hash keys: %w", err)
	}
	out := map[int64]map[string]string{}
	for _, r := range rows {
		if out[r.PersonID] == nil {
			out[r.PersonID] = map[string]string{}
		}
		out[r.PersonID][r.FlagKey] = r.HashKey
	}
	return out, nil
}

// DeletePerson deletes the hash keys of a deleted person. It joins the
// transaction in ctx.
func (s *Store) DeletePerson(ctx context.Context, projectID, personID int64) error {
	_, err := s.db.Write(ctx).NewDelete().Model((*hashKeyRow)(nil)).Where("project_id = ? AND person_id = ?", projectID, personID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("delete hash keys of person %d: %w", personID, err)
	}
	return nil
}

package events

import (
	"context"
	"slices"
	"strconv"

	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/sdk"
)

// Shared is the part of the event store that stays in the database with every backend:
// the change counters, the hooks of other packages, and the reading of persons. Its
// methods join the transaction in their context.
type Shared struct {
	db          *db.DB
	hooks       []EraseHook
	expireHooks []ExpireHook
	Refused     func(ctx context.Context, ev *sdk.Event, reason string) error // keeps what ClickHouse refuses; nil: it waits
}

// NewShared returns the part in d.
func NewShared(d *db.DB) *Shared { return &Shared{db: d} }

// Changes returns the change counters of a project; Row is not set.
func (s *Shared) Changes(ctx context.Context, projectID int64) (cp Checkpoint, err error) {
	err = s.db.Read(ctx).NewSelect().Model((*changeRow)(nil)).
		ColumnExpr("coalesce(sum(erased), 0) AS erased").ColumnExpr("coalesce(sum(people), 0) AS people").
		Where("project_id IN (?, ?)", projectID, allProjects).Scan(ctx, &cp.Erased, &cp.Persons)
	return cp, err
}

// recordChange adds to the change counters of a project.
func (s *Shared) recordChange(ctx context.Context, projectID, erased, persons int64) error {
	_, err := s.db.Write(ctx).NewInsert().Model(&changeRow{ProjectID: projectID, Erased: erased, People: persons}).
		On("CONFLICT (project_id) DO UPDATE").Set("erased = c.erased + excluded.erased").Set("people = c.people + excluded.people").
		Exec(ctx)
	return err
}

func (s *Shared) haveOwners(ctx context.Context, projectID int64, distinctIDs []string) (bool, error) {
	return s.db.Write(ctx).NewSelect().TableExpr("person_distinct_ids").
		Where("project_id = ? AND distinct_id IN (?)", projectID, bun.List(distinctIDs)).Exists(ctx)
}

// recordErased adds to the change counters of the project, which locks them, and
// sets the checkpoints of e.
func (s *Shared) recordErased(ctx context.Context, e *Erased, erased, persons int64) error {
	if err := s.recordChange(ctx, e.ProjectID, erased, persons); err != nil {
		return err
	}
	after, err := s.Changes(ctx, e.ProjectID)
	e.After = Checkpoint{Erased: after.Erased, Persons: after.Persons}
	e.Before = Checkpoint{Erased: after.Erased - erased, Persons: after.Persons - persons}
	return err
}

func (s *Shared) callHooks(ctx context.Context, e *Erased) error {
	for _, hook := range s.hooks {
		if err := hook(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// personChunk is how many distinct ids one statement has.
const personChunk = 500

// Persons calls fn for the current person of each distinct id that has one.
func (s *Shared) Persons(ctx context.Context, projectID int64, distinctIDs []string, properties bool, fn func(*HistoryPerson) error) error {
	var queries []string
	for ids := range slices.Chunk(distinctIDs, personChunk) {
		q := s.db.Read(ctx).NewSelect().TableExpr("person_distinct_ids AS d").ColumnExpr("d.distinct_id, d.person_id").
			Where("d.project_id = ? AND d.distinct_id IN (?)", projectID, bun.List(ids))
		if properties {
			q = q.ColumnExpr("p.properties").Join("JOIN persons AS p ON p.id = d.person_id")
		}
		queries = append(queries, q.String())
	}
	var p HistoryPerson
	return s.db.Scan(ctx, queries, func(_ int, r *db.Row) error {
		p.DistinctID, p.Row = string(r.Bytes(0)), r.Int(1)
		if properties {
			p.Properties = r.Bytes(2)
		}
		return fn(&p)
	})
}

// Correct records that events of distinct ids are erased, in the transaction in ctx, and calls
// the hooks. It is for backends that delete the events afterwards.
func (s *Shared) Correct(ctx context.Context, projectID int64, distinctIDs []string, erased []HistoryEvent) error {
	e := &Erased{ProjectID: projectID, Events: erased}
	err := s.recordErased(ctx, e, 1, 0)
	if err != nil {
		return err
	}
	if e.Owned, err = s.haveOwners(ctx, projectID, distinctIDs); err != nil {
		return err
	}
	return s.callHooks(ctx, e)
}

// AddPersons sets the current persons of records: the uuid, and with details whether they
// are identified, and the properties.
func (s *Shared) AddPersons(ctx context.Context, records []Record, details bool) error {
	type key struct {
		project    int64
		distinctID string
	}
	places := map[key][]int{}
	ids := map[int64][]string{}
	for i := range records {
		k := key{records[i].ProjectID, records[i].DistinctID}
		if places[k] = append(places[k], i); len(places[k]) == 1 {
			ids[k.project] = append(ids[k.project], k.distinctID)
		}
	}
	for project, list := range ids {
		for chunk := range slices.Chunk(list, personChunk) {
			var rows []Record
			q := s.db.Read(ctx).NewSelect().TableExpr("person_distinct_ids AS d").Join("JOIN persons AS p ON p.id = d.person_id").
				ColumnExpr("d.distinct_id, p.uuid AS current_person, p.id AS person_row").
				Where("d.project_id = ? AND d.distinct_id IN (?)", project, bun.List(chunk))
			if details {
				q = q.ColumnExpr("p.is_identified AS person_identified, p.properties AS person_properties")
			}
			if err := q.Scan(ctx, &rows); err != nil {
				return err
			}
			for j := range rows {
				for _, i := range places[key{project, rows[j].DistinctID}] {
					r := &records[i]
					r.CurrentPerson, r.PersonRow = rows[j].CurrentPerson, rows[j].PersonRow
					r.PersonIdentified, r.PersonProperties = rows[j].PersonIdentified, rows[j].PersonProperties
				}
			}
		}
	}
	return nil
}

// DistinctIDsOf returns the distinct ids of a person, which is named by its uuid or its
// number.
func (s *Shared) DistinctIDsOf(ctx context.Context, projectID int64, personID string) (out []string, err error) {
	return out, ownedBy(s.db.Read(ctx).NewSelect(), projectID, personID).Scan(ctx, &out)
}

// ownedBy selects the distinct ids of a person.
func ownedBy(q *bun.SelectQuery, projectID int64, personID string) *bun.SelectQuery {
	column, id := "uuid", any(personID)
	if n, err := strconv.ParseInt(personID, 10, 64); err == nil {
		column, id = "id", n
	}
	return q.TableExpr("person_distinct_ids AS i").Join("JOIN persons AS o ON o.id = i.person_id").ColumnExpr("i.distinct_id").
		Where("i.project_id = ? AND o.project_id = ? AND o.? = ?", projectID, projectID, bun.Ident(column), id)
}

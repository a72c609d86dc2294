package events

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/propertyfilter"
	"github.com/guidonhq/guidon/sdk"
)

// Record is an event with its current person.
type Record struct {
	ID            int64      `bun:"id"`
	ProjectID     int64      `bun:"project_id"`
	UUID          uuid.UUID  `bun:"uuid"`
	Event         string     `bun:"event"`
	DistinctID    string     `bun:"distinct_id"`
	PersonUUID    *uuid.UUID `bun:"person_uuid"`
	CurrentPerson *string    `bun:"current_person"`
	Timestamp     int64      `bun:"timestamp"`
	ReceivedAt    int64      `bun:"received_at"`
	ElementsChain *string    `bun:"elements_chain"`
	CurrentURL    string     `bun:"current_url"`
	Properties    string     `bun:"properties"` // compressed until store.plain

	// The person is read for filters of person properties and for answers only.
	PersonProperties *string `bun:"person_properties"`
	PersonIdentified *bool   `bun:"person_identified"`
	PersonRow        int64   `bun:"person_row"` // set by Shared.AddPersons
}

// cursor returns the position of the event in a list.
func (r *Record) cursor() Cursor { return Cursor{Timestamp: r.Timestamp, Row: r.ID} }

// ToEvent returns the event with its current person.
func (r *Record) ToEvent() sdk.Event {
	e := sdk.Event{
		UUID: r.UUID.String(), ProjectID: r.ProjectID, Name: r.Event, DistinctID: r.DistinctID,
		Timestamp: time.UnixMicro(r.Timestamp).UTC(), ReceivedAt: time.UnixMicro(r.ReceivedAt).UTC(),
		Properties: []byte(r.Properties),
	}
	if r.ElementsChain != nil {
		e.ElementsChain = *r.ElementsChain
	}
	switch {
	case r.CurrentPerson != nil:
		e.PersonID = *r.CurrentPerson
	case r.PersonUUID != nil:
		e.PersonID = r.PersonUUID.String()
	}
	return e
}

const eventColumns = `e.id, e.project_id, e.uuid, e.event, e.distinct_id, e.person_uuid, p.uuid AS current_person,
	e.timestamp, e.received_at, e.elements_chain, coalesce(e.current_url, '') AS current_url, e.properties`

// joinPersons joins the current persons of events.
const joinPersons = `LEFT JOIN person_distinct_ids AS d ON d.project_id = e.project_id AND d.distinct_id = e.distinct_id
	LEFT JOIN persons AS p ON p.id = d.person_id`

func (s store) selectEvents(ctx context.Context) *bun.SelectQuery {
	return s.selectFrom(ctx, "events AS e")
}

func (s store) selectFrom(ctx context.Context, table string) *bun.SelectQuery {
	return s.db.Read(ctx).NewSelect().TableExpr(table).ColumnExpr(eventColumns).Join(joinPersons)
}

// tableFor is the table with the index that suits the filter. Without statistics
// SQLite would read a whole history in the order of the list instead of sorting
// the few events of a rare name.
func (s store) tableFor(f *Filter) string {
	switch {
	case s.db.Postgres():
		return "events AS e"
	case f.DistinctID != "" || f.PersonID != "":
		return "events AS e INDEXED BY events_by_distinct_id"
	case f.Event != "":
		return "events AS e INDEXED BY events_by_name"
	}
	return "events AS e INDEXED BY events_newest"
}

func (s store) where(ctx context.Context, q *bun.SelectQuery, projectID int64, f *Filter) *bun.SelectQuery {
	q = q.Where("e.project_id = ?", projectID)
	if f.Event != "" {
		q = q.Where("e.event = ?", f.Event)
	}
	if f.DistinctID != "" {
		q = q.Where("e.distinct_id = ?", f.DistinctID)
	}
	if f.PersonID != "" {
		q = q.Where("e.distinct_id IN (?)", ownedBy(s.db.Read(ctx).NewSelect(), projectID, f.PersonID))
	}
	if !f.After.IsZero() {
		q = q.Where("e.timestamp > ?", f.After.UnixMicro())
	}
	if !f.Before.IsZero() {
		q = q.Where("e.timestamp < ?", f.Before.UnixMicro())
	}
	if f.Contains != "" {
		q = q.Where("? LIKE ? ESCAPE '!'", bun.Safe(s.plainProperties()), db.Contains(f.Contains))
	}
	if f.Cursor != (Cursor{}) {
		q = q.Where("(e.timestamp, e.id) < (?, ?)", f.Cursor.Timestamp, f.Cursor.Row)
	}
	return q
}

// plainProperties is an expression for the text of the properties.
func (s store) plainProperties() string {
	if s.db.Postgres() {
		return "e.properties"
	}
	return `CASE typeof(e.properties) WHEN 'blob' THEN event_properties(e.properties,
		(SELECT c.content FROM event_dictionaries AS c WHERE c.id = event_dictionary_id(e.properties)), e.distinct_id, e.current_url)
		ELSE e.properties END`
}

func (s store) List(ctx context.Context, projectID int64, f Filter, limit int) ([]Record, error) {
	var out []Record
	q := s.selectFrom(ctx, s.tableFor(&f))
	if f.WithPersons {
		q = q.ColumnExpr("p.is_identified AS person_identified, p.properties AS person_properties")
	} else if slices.ContainsFunc(f.Properties, func(i propertyfilter.Item) bool { return i.Kind == PersonProperty }) {
		q = q.ColumnExpr("p.properties AS person_properties")
	}
	err := s.where(ctx, q, projectID, &f).OrderExpr("e.timestamp DESC, e.id DESC").
		Limit(int64(limit)).Scan(ctx, &out)
	if err != nil {
		return nil, err
	}
	return out, s.plain(ctx, out)
}

func (s store) Get(ctx context.Context, projectID int64, id uuid.UUID) ([]Record, error) {
	var out []Record
	err := s.selectEvents(ctx).ColumnExpr("p.is_identified AS person_identified, p.properties AS person_properties").
		Where("e.project_id = ?", projectID).Where("e.uuid = ?", s.uuidValue(id)).Scan(ctx, &out)
	if err != nil {
		return nil, err
	}
	return out, s.plain(ctx, out)
}

// uuidValue is a uuid in the form that the dialect compares.
func (s store) uuidValue(id uuid.UUID) any {
	if s.db.Postgres() {
		return id.String()
	}
	return id[:]
}

func (s store) After(ctx context.Context, projectID, after int64, limit int) ([]Record, error) {
	table := "events AS e"
	if !s.db.Postgres() {
		table += " NOT INDEXED" // by row; see subquery.table
	}
	q := s.selectFrom(ctx, table).Where("e.id > ?", after).OrderExpr("e.id").Limit(int64(limit))
	if projectID != 0 {
		q = q.Where("e.project_id = ?", projectID)
	}
	var out []Record
	if err := q.Scan(ctx, &out); err != nil {
		return nil, err
	}
	return out, s.plain(ctx, out)
}

func (s store) Last(ctx context.Context) (row int64, err error) {
	err = s.db.Read(ctx).NewSelect().TableExpr("events").ColumnExpr("coalesce(max(id), 0)").Scan(ctx, &row)
	return row, err
}

func (s store) Count(ctx context.Context, projectID int64, f Filter) (n int64, err error) {
	q := s.db.Read(ctx).NewSelect().TableExpr("events AS e").ColumnExpr("count(*)")
	err = s.where(ctx, q, projectID, &f).Scan(ctx, &n)
	return n, err
}

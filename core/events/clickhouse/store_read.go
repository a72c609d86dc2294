package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/personcolumn"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
	"github.com/guidonhq/guidon/core/propertyfilter"
)

// conditions are joined with AND.
type conditions []string

func (c *conditions) add(format string, args ...any) { *c = append(*c, fmt.Sprintf(format, args...)) }

func (c conditions) String() string { return strings.Join(c, " AND ") }

// selection returns the conditions of a filter without its cursor; none is true if no event
// can pass.
func (s *Store) selection(ctx context.Context, projectID int64, f *events.Filter) (c conditions, none bool, err error) {
	c.add("project_id = %d", projectID)
	if f.Event != "" {
		c.add("event = %s", wire.Quote(f.Event))
	}
	if f.DistinctID != "" {
		c.add("distinct_id = %s", wire.Quote(f.DistinctID))
	}
	if f.PersonID != "" {
		ids, err := s.shared.DistinctIDsOf(ctx, projectID, f.PersonID)
		if err != nil || len(ids) == 0 {
			return nil, true, err
		}
		c.add("distinct_id IN (%s)", wire.QuoteAll(ids))
	}
	if !f.After.IsZero() {
		c.add("timestamp > %d", f.After.UnixMicro())
	}
	if !f.Before.IsZero() {
		c.add("timestamp < %d", f.Before.UnixMicro())
	}
	if f.Contains != "" {
		c.add("position("+wire.PlainProperties+", %s) > 0", wire.Quote(f.Contains))
	}
	return c, false, nil
}

// readTable prepares the tables and returns the table of events with the condition for open
// erasures.
func (s *Store) readTable(ctx context.Context, projectID int64) (without string, err error) {
	if err := s.prepare(ctx); err != nil {
		return "", err
	}
	return s.withoutErased(ctx, projectID)
}

// List implements events.Backend. It finds the rows in windows of time that grow, from the
// newest one, without reading wide columns, and then reads the events.
func (s *Store) List(ctx context.Context, projectID int64, f events.Filter, limit int) ([]events.Record, error) {
	without, err := s.readTable(ctx, projectID)
	if err != nil {
		return nil, err
	}
	c, none, err := s.selection(ctx, projectID, &f)
	if err != nil || none {
		return nil, err
	}
	if f.Cursor != (events.Cursor{}) {
		c.add("timestamp <= %d", f.Cursor.Timestamp)
		c.add("(timestamp < %d OR row < %d)", f.Cursor.Timestamp, f.Cursor.Row)
	}
	found, err := s.newest(ctx, c.String()+without, upper(&f), limit)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	out, err := s.records(ctx, projectID, found, "ORDER BY timestamp DESC, row DESC")
	if err != nil {
		return nil, err
	}
	details := f.WithPersons || slices.ContainsFunc(f.Properties, func(i propertyfilter.Item) bool { return i.Kind == events.PersonProperty })
	return out, s.shared.AddPersons(ctx, out, details)
}

// upper is a time that all events of a filter are before, or about now.
func upper(f *events.Filter) int64 {
	at := time.Now().UnixMicro()
	if !f.Before.IsZero() {
		at = min(at, f.Before.UnixMicro())
	}
	if f.Cursor != (events.Cursor{}) {
		at = min(at, f.Cursor.Timestamp)
	}
	return at
}

// newest returns the positions of the newest events that pass, at most limit.
func (s *Store) newest(ctx context.Context, where string, upper int64, limit int) ([]events.Cursor, error) {
	for span := int64(dayMicros); ; span *= 8 {
		bounded := where
		if last := span > 3000*dayMicros; !last {
			bounded += fmt.Sprintf(" AND timestamp >= %d", upper-span)
		} else {
			return s.positions(ctx, bounded, "ORDER BY timestamp DESC, row DESC", limit)
		}
		found, err := s.positions(ctx, bounded, "ORDER BY timestamp DESC, row DESC", limit)
		if err != nil || len(found) >= limit {
			return found, err
		}
	}
}

// positions returns positions in an order without repetitions, at most limit.
func (s *Store) positions(ctx context.Context, where, order string, limit int) ([]events.Cursor, error) {
	for n := limit; ; n *= 2 {
		var out []events.Cursor
		read := 0
		err := s.client.Query(ctx, fmt.Sprintf("SELECT timestamp, row FROM %s WHERE %s %s LIMIT %d", eventTable, where, order, n), func(r *wire.Reader) error {
			at := r.Int()
			c := events.Cursor{Timestamp: at, Row: r.Int()}
			if read++; len(out) == 0 || out[len(out)-1] != c {
				out = append(out, c)
			}
			return nil
		})
		if err != nil || len(out) >= limit || read < n {
			return out[:min(len(out), limit)], err
		}
	}
}

// records reads the events at positions; project 0 means all.
func (s *Store) records(ctx context.Context, projectID int64, found []events.Cursor, order string) ([]events.Record, error) {
	var c conditions
	if projectID != 0 {
		c.add("project_id = %d", projectID)
	}
	from, to := found[0].Timestamp, found[0].Timestamp
	rows := make([]int64, len(found))
	for i, p := range found {
		from, to, rows[i] = min(from, p.Timestamp), max(to, p.Timestamp), p.Row
	}
	c.add("timestamp >= %d AND timestamp <= %d AND row IN (%s)", from, to, joinInts(rows))
	return s.selectRecords(ctx, c.String(), order)
}

// selectRecords reads events without their current persons. Repeated rows occur once.
func (s *Store) selectRecords(ctx context.Context, where, order string) ([]events.Record, error) {
	var out []events.Record
	seen := map[int64]bool{}
	err := s.client.Query(ctx, "SELECT "+columnNames(eventColumns)+" FROM "+eventTable+" WHERE "+where+" "+order, func(r *wire.Reader) error {
		if e := readEvent(r); r.Err == nil && !seen[e.row] {
			seen[e.row] = true
			out = append(out, e.record())
		}
		return r.Err
	})
	return out, err
}

func (e *event) record() events.Record {
	r := events.Record{
		ID: e.row, ProjectID: e.project, UUID: e.uuid, Event: e.name, DistinctID: e.distinctID, PersonUUID: personcolumn.Decode(e.person, e.project, e.distinctID),
		Timestamp: e.at, ReceivedAt: e.at + e.received, CurrentURL: e.url, Properties: e.properties,
	}
	if e.chain != "" {
		r.ElementsChain = &e.chain
	}
	return r
}

// Get implements events.Backend.
func (s *Store) Get(ctx context.Context, projectID int64, id uuid.UUID) ([]events.Record, error) {
	without, err := s.readTable(ctx, projectID)
	if err != nil {
		return nil, err
	}
	var days conditions
	err = s.client.Query(ctx, fmt.Sprintf("SELECT hash, day FROM %s WHERE hash = %d", idTable, idHash(events.Identity{Project: projectID, UUID: id})), func(r *wire.Reader) error {
		_, day := r.Int(), r.Day()
		days.add("timestamp >= %d AND timestamp < %d", day*dayMicros, (day+1)*dayMicros)
		return nil
	})
	if err != nil || len(days) == 0 {
		return nil, err
	}
	out, err := s.selectRecords(ctx, fmt.Sprintf("project_id = %d AND ((%s)) AND uuid = toUUID(%s)", projectID, strings.Join(days, ") OR ("), wire.Quote(id.String()))+without, "LIMIT 2")
	if err != nil {
		return nil, err
	}
	return out, s.shared.AddPersons(ctx, out, true)
}

// After implements events.Backend.
func (s *Store) After(ctx context.Context, projectID, after int64, limit int) ([]events.Record, error) {
	without, err := s.readTable(ctx, projectID)
	if err != nil {
		return nil, err
	}
	last, err := s.Last(ctx)
	if err != nil || last <= after {
		return nil, err
	}
	var c conditions
	c.add("row > %d AND row <= %d", after, last)
	if projectID != 0 {
		c.add("project_id = %d", projectID)
	}
	found, err := s.positions(ctx, c.String()+without, "ORDER BY row", limit)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	out, err := s.records(ctx, projectID, found, "ORDER BY row")
	if err != nil {
		return nil, err
	}
	return out, s.shared.AddPersons(ctx, out, false)
}

// Export implements events.Backend.
func (s *Store) Export(ctx context.Context, projectID int64, x events.ExportQuery, limit int) ([]events.Record, error) {
	without, err := s.readTable(ctx, projectID)
	if err != nil {
		return nil, err
	}
	var c conditions
	c.add("project_id = %d", projectID)
	if x.Event != "" {
		c.add("event = %s", wire.Quote(x.Event))
	}
	if !x.Since.IsZero() {
		c.add("timestamp >= %d", x.Since.UnixMicro())
	}
	if !x.Until.IsZero() {
		c.add("timestamp < %d", x.Until.UnixMicro())
	}
	if x.Through != 0 {
		c.add("row <= %d", x.Through)
	}
	if x.After != (events.Cursor{}) {
		c.add("timestamp >= %d", x.After.Timestamp)
		c.add("(timestamp > %d OR row > %d)", x.After.Timestamp, x.After.Row)
	}
	found, err := s.positions(ctx, c.String()+without, "ORDER BY timestamp, row", limit)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	out, err := s.records(ctx, projectID, found, "ORDER BY timestamp, row")
	if err != nil {
		return nil, err
	}
	return out, s.shared.AddPersons(ctx, out, false)
}

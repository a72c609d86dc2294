package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// Count implements events.Backend.
func (s *Store) Count(ctx context.Context, projectID int64, f events.Filter) (n int64, err error) {
	without, err := s.readTable(ctx, projectID)
	if err != nil {
		return 0, err
	}
	c, none, err := s.selection(ctx, projectID, &f)
	if err != nil || none {
		return 0, err
	}
	return s.number(ctx, "count()", c.String()+without)
}

// number returns one value of the events that pass.
func (s *Store) number(ctx context.Context, expression, where string) (n int64, err error) {
	err = s.client.Query(ctx, fmt.Sprintf("SELECT toInt64(%s) FROM %s WHERE %s", expression, eventTable, where), func(r *wire.Reader) error {
		n = r.Int()
		return nil
	})
	return n, err
}

// Counts implements events.Backend.
func (s *Store) Counts(ctx context.Context, q *events.CountQuery) ([]events.Count, error) {
	without, err := s.readTable(ctx, q.ProjectID)
	if err != nil {
		return nil, err
	}
	where := fmt.Sprintf("project_id = %d AND event = %s AND timestamp >= %d AND timestamp < %d", q.ProjectID, wire.Quote(q.Event), q.From.UnixMicro(), q.To.UnixMicro()) + without
	if q.Indexed() {
		where += " AND flag_key != '' AND flag_key = " + wire.Quote(q.Value)
	}
	persons, err := s.personsOf(ctx, q.ProjectID, where)
	if err != nil {
		return nil, err
	}
	c := events.NewCounter(q)
	if q.Indexed() {
		value := "''"
		if q.Breakdown != "" {
			value = "flag_response"
		}
		err = s.client.Query(ctx, fmt.Sprintf("SELECT intDiv(timestamp - %d, %d) AS i, %s AS value, distinct_id, toInt64(count()) FROM %s WHERE %s GROUP BY i, value, distinct_id",
			q.From.UnixMicro(), q.Interval.Microseconds(), value, eventTable, where), func(r *wire.Reader) error {
			interval, value, id := r.Int(), r.String(), r.String()
			c.AddMany(interval, value, persons.text(id), r.Int())
			return nil
		})
		return c.Counts(), err
	}
	var properties []byte
	err = s.client.Query(ctx, fmt.Sprintf("SELECT timestamp, distinct_id, "+wire.PlainProperties+" FROM %s WHERE %s", eventTable, where), func(r *wire.Reader) error {
		at, id := r.Int(), r.String()
		if properties = r.Bytes(properties[:0]); r.Err == nil {
			c.Add(at, persons.text(id), properties)
		}
		return nil
	})
	return c.Counts(), err
}

// personMap has the persons of distinct ids.
type personMap map[string]int64

// text returns one text per person, or per distinct id without one.
func (m personMap) text(distinctID string) string {
	if id, ok := m[distinctID]; ok {
		return "p" + strconv.FormatInt(id, 10)
	}
	return "d" + distinctID
}

// personsOf returns the persons of the distinct ids of the events that pass.
func (s *Store) personsOf(ctx context.Context, projectID int64, where string) (personMap, error) {
	var ids []string
	err := s.client.Query(ctx, "SELECT DISTINCT distinct_id FROM "+eventTable+" WHERE "+where, func(r *wire.Reader) error {
		ids = append(ids, r.String())
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make(personMap, len(ids))
	return out, s.shared.Persons(ctx, projectID, ids, false, func(p *events.HistoryPerson) error {
		out[p.DistinctID] = p.Row
		return nil
	})
}

// LastSeen implements events.Backend.
func (s *Store) LastSeen(ctx context.Context, projectID int64, distinctIDs []string) (map[string]time.Time, error) {
	without, err := s.readTable(ctx, projectID)
	if err != nil {
		return nil, err
	}
	out := make(map[string]time.Time, len(distinctIDs))
	for ids := range slices.Chunk(distinctIDs, 5000) {
		err := s.client.Query(ctx, fmt.Sprintf("SELECT distinct_id, max(timestamp) FROM %s WHERE project_id = %d AND distinct_id IN (%s)%s GROUP BY distinct_id",
			eventTable, projectID, wire.QuoteAll(ids), without), func(r *wire.Reader) error {
			id := r.String()
			out[id] = time.UnixMicro(r.Int()).UTC()
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Projects implements events.Backend.
func (s *Store) Projects(ctx context.Context) (out []int64, err error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	return out, s.client.Query(ctx, "SELECT DISTINCT project_id FROM "+eventTable+" ORDER BY project_id", func(r *wire.Reader) error {
		out = append(out, r.Int())
		return nil
	})
}

// Names implements events.Backend.
func (s *Store) Names(ctx context.Context, projectID int64) (out []string, err error) {
	without, err := s.readTable(ctx, projectID)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	err = s.client.Query(ctx, fmt.Sprintf("SELECT DISTINCT event FROM %s WHERE project_id = %d", eventTable, projectID)+without, func(r *wire.Reader) error {
		names[r.String()] = true
		return nil
	})
	return slices.Sorted(maps.Keys(names)), err
}

// Oldest implements events.Backend.
func (s *Store) Oldest(ctx context.Context, projectID int64, event string, since time.Time) (time.Time, bool, error) {
	without, err := s.readTable(ctx, projectID)
	if err != nil {
		return time.Time{}, false, err
	}
	var c conditions
	c.add("project_id = %d", projectID)
	if event != "" {
		c.add("event = %s", wire.Quote(event))
	}
	if !since.IsZero() {
		c.add("timestamp >= %d", since.UnixMicro())
	}
	var at, n int64
	err = s.client.Query(ctx, "SELECT min(timestamp), toInt64(count()) FROM "+eventTable+" WHERE "+c.String()+without, func(r *wire.Reader) error {
		at, n = r.Int(), r.Int()
		return nil
	})
	return time.UnixMicro(at).UTC(), n > 0, err
}

// expired selects the events of x.
func expired(x events.Expiry) string {
	var c conditions
	c.add("project_id = %d AND timestamp < %d", x.ProjectID, x.Before.UnixMicro())
	if x.Event != "" {
		c.add("event = %s", wire.Quote(x.Event))
	}
	return c.String()
}

// CountExpired implements events.Backend.
func (s *Store) CountExpired(ctx context.Context, x events.Expiry) (int64, error) {
	without, err := s.readTable(ctx, x.ProjectID)
	if err != nil {
		return 0, err
	}
	return s.number(ctx, "count()", expired(x)+without)
}

// likePattern converts the text of a URLContains clause to a pattern of LIKE, which has the
// same wildcards and the same escapes but refuses other uses of a backslash.
func likePattern(text string) string {
	var b strings.Builder
	b.WriteByte('%')
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '\\':
			b.WriteByte(text[i])
		case i+1 < len(text) && strings.IndexByte(`%_\`, text[i+1]) >= 0:
			b.WriteByte('\\')
			i++
			b.WriteByte(text[i])
		default:
			b.WriteString(`\\`)
		}
	}
	b.WriteByte('%')
	return b.String()
}

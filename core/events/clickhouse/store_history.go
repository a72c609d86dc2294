package clickhouse

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// ambiguousLength is the length from which a URL may be truncated.
const ambiguousLength = events.URLMax - 3

// part is the part of a history query that one statement answers: the clauses about one event
// name, or all clauses if one of them matches every name.
type part struct {
	event    string
	anyEvent bool
	clauses  []events.HistoryClause
}

func parts(q *events.HistoryQuery) (out []part) {
	place := map[string]int{}
	for _, c := range q.Any {
		if c.AnyEvent {
			return []part{{anyEvent: true, clauses: q.Any}}
		}
		i, seen := place[c.Event]
		if !seen {
			i = len(out)
			place[c.Event] = i
			out = append(out, part{event: c.Event})
		}
		out[i].clauses = append(out[i].clauses, c)
	}
	return out
}

// certain is an expression that is true for events that certainly fit.
func (p *part) certain() string {
	var clauses []string
	for i := range p.clauses {
		c := &p.clauses[i]
		all := conditions{"1"}
		if p.anyEvent && !c.AnyEvent {
			all.add("event = %s", wire.Quote(c.Event))
		}
		switch {
		case c.URLMatching == events.URLEquals && len(c.URL) >= ambiguousLength:
			all.add("0") // every URL of that length is ambiguous
		case c.URLMatching == events.URLEquals:
			all.add("current_url != '' AND current_url = %s", wire.Quote(c.URL))
		case c.URLMatching == events.URLContains:
			all.add("current_url != '' AND current_url LIKE %s", wire.Quote(likePattern(c.URL)))
		}
		clauses = append(clauses, "("+all.String()+")")
	}
	return "(" + strings.Join(clauses, " OR ") + ")"
}

func (p *part) checksURL() bool {
	for i := range p.clauses {
		if p.clauses[i].URLMatching != events.URLAny {
			return true
		}
	}
	return false
}

// where selects the events of the part that fit or are ambiguous; with Ambiguous only the
// latter.
func (p *part) where(q *events.HistoryQuery) string {
	var c conditions
	c.add("project_id = %d", q.ProjectID)
	if !p.anyEvent {
		c.add("event = %s", wire.Quote(p.event))
	}
	if !q.From.IsZero() {
		c.add("timestamp >= %d", q.From.UnixMicro())
	}
	if !q.To.IsZero() {
		c.add("timestamp < %d", q.To.UnixMicro())
	}
	if q.After > 0 {
		c.add("row > %d", q.After)
	}
	if q.Through > 0 {
		c.add("row <= %d", q.Through)
	}
	certain := p.certain()
	switch {
	case q.Ambiguous && !p.checksURL():
		c.add("0")
	case q.Ambiguous:
		c.add("length(current_url) >= %d AND NOT %s", ambiguousLength, certain)
	case p.checksURL():
		c.add("(%s OR length(current_url) >= %d)", certain, ambiguousLength)
	default:
		c.add("%s", certain)
	}
	return c.String()
}

// CountHistory implements events.Backend. It counts up to the row that it returns.
func (s *Store) CountHistory(ctx context.Context, q *events.HistoryQuery, width time.Duration) (events.HistoryCounts, error) {
	t := events.HistoryCounts{Events: map[int64]int64{}}
	without, err := s.readTable(ctx, q.ProjectID)
	if err != nil {
		return t, err
	}
	if t.Row, err = s.Last(ctx); err != nil {
		return t, err
	}
	for _, p := range parts(q) {
		err := s.client.Query(ctx, fmt.Sprintf("SELECT intDiv(timestamp, %d) AS i, toUInt8(%s) AS certain, toInt64(count()) FROM %s WHERE %s AND row <= %d%s GROUP BY i, certain",
			width.Microseconds(), p.certain(), eventTable, p.where(q), t.Row, without), func(r *wire.Reader) error {
			interval, certain, n := r.Int(), r.Byte(), r.Int()
			if certain == 0 {
				t.Ambiguous += n
			} else {
				t.Events[interval] += n
			}
			return nil
		})
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// DistinctIDs implements events.Backend.
func (s *Store) DistinctIDs(ctx context.Context, q *events.HistoryQuery) (ids map[string]struct{}, ambiguous bool, err error) {
	ids = map[string]struct{}{}
	without, err := s.readTable(ctx, q.ProjectID)
	if err != nil {
		return nil, false, err
	}
	for _, p := range parts(q) {
		err := s.client.Query(ctx, fmt.Sprintf("SELECT DISTINCT distinct_id, toUInt8(%s) AS certain FROM %s WHERE %s%s", p.certain(), eventTable, p.where(q), without),
			func(r *wire.Reader) error {
				id := r.String()
				if r.Byte() == 0 {
					ambiguous = true
				} else {
					ids[id] = struct{}{}
				}
				return nil
			})
		if err != nil {
			return nil, false, err
		}
	}
	return ids, ambiguous, nil
}

// scanChunk is how many events are read before their persons.
const scanChunk = 1000

// ScanHistory implements events.Backend.
func (s *Store) ScanHistory(ctx context.Context, q *events.HistoryQuery, fn func(*events.HistoryEvent) error) error {
	without, err := s.readTable(ctx, q.ProjectID)
	if err != nil {
		return err
	}
	for _, p := range parts(q) {
		if err := s.scanPart(ctx, q, p.where(q)+without, fn); err != nil {
			return err
		}
	}
	return nil
}

// scanPart reads all columns in the order of event; those that q leaves out are empty.
func (s *Store) scanPart(ctx context.Context, q *events.HistoryQuery, where string, fn func(*events.HistoryEvent) error) error {
	columns := make([]string, len(eventColumns))
	for i, c := range eventColumns {
		columns[i] = quoteName(c.name)
		switch {
		case c.name == "elements_chain" && q.Without&events.ElementsColumn != 0, c.name == "properties" && q.Without&events.PropertiesColumn != 0,
			c.name == "person", c.name == "flag_key", c.name == "flag_response", c.name == "current_url" && q.Without&events.PropertiesColumn != 0:
			columns[i] = "''"
		case c.name == "uuid" && q.Without&events.IdentityColumns != 0:
			columns[i] = "toUUID('00000000-0000-0000-0000-000000000000')"
		case c.name == "received_after" && q.Without&events.IdentityColumns != 0:
			columns[i] = "toInt64(0)"
		}
	}
	var chunk []events.HistoryEvent
	emit := func() error {
		if q.WithPersons {
			if err := s.addPersons(ctx, q.ProjectID, chunk); err != nil {
				return err
			}
		}
		for i := range chunk {
			if err := fn(&chunk[i]); err != nil {
				return err
			}
		}
		chunk = chunk[:0]
		return nil
	}
	err := s.client.Query(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM "+eventTable+" WHERE "+where, func(r *wire.Reader) error {
		e := readEvent(r)
		if r.Err != nil {
			return r.Err
		}
		if chunk = append(chunk, e.history(q)); len(chunk) < scanChunk {
			return nil
		}
		return emit()
	})
	if err != nil {
		return err
	}
	return emit()
}

func (e *event) history(q *events.HistoryQuery) events.HistoryEvent {
	var out events.HistoryEvent
	ev := &out.Event
	out.Row, ev.ProjectID, ev.Name, ev.DistinctID = e.row, e.project, e.name, e.distinctID
	ev.Timestamp = time.UnixMicro(e.at).UTC()
	if q.Without&events.IdentityColumns == 0 {
		ev.UUID, ev.ReceivedAt = e.uuid.String(), time.UnixMicro(e.at+e.received).UTC()
	}
	if q.Without&events.PropertiesColumn == 0 {
		ev.Properties = json.RawMessage(e.properties)
	}
	ev.ElementsChain = e.chain
	return out
}

// addPersons sets the current persons of events of a project.
func (s *Store) addPersons(ctx context.Context, projectID int64, list []events.HistoryEvent) error {
	places := map[string][]int{}
	var ids []string
	for i := range list {
		id := list[i].Event.DistinctID
		if places[id] = append(places[id], i); len(places[id]) == 1 {
			ids = append(ids, id)
		}
	}
	records := make([]events.Record, len(ids))
	for i, id := range ids {
		records[i] = events.Record{ProjectID: projectID, DistinctID: id}
	}
	if err := s.shared.AddPersons(ctx, records, true); err != nil {
		return err
	}
	for i := range records {
		for _, place := range places[ids[i]] {
			if r := &records[i]; r.CurrentPerson != nil {
				list[place].Event.PersonID = *r.CurrentPerson
				list[place].PersonRow = r.PersonRow
				list[place].PersonProperties = []byte(*r.PersonProperties)
			}
		}
	}
	return nil
}

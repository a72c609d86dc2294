package events

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/propertyfilter"
)

// scanBudget bounds the work of one list with property filters, which reads
// events in pages, in the order of the list, and evaluates the filters in Go. The
// cursor then continues behind the last event that was read.
type scanBudget struct {
	events int           // no page starts after this many events
	page   int           // events of a page
	time   time.Duration // no page starts after this time
}

var defaultScan = scanBudget{events: 20_000, page: 1000, time: 5 * time.Second}

// Kinds of properties that filters of a list read: of the event, and of its
// current person.
const (
	EventProperty  = "event"
	PersonProperty = "person"
)

// search returns at most limit events that pass the property filters of f, and
// the cursor behind them or behind the last event read.
func (s *Service) search(ctx context.Context, projectID int64, f Filter, limit int) ([]Record, Cursor, error) {
	passes := newPropertyTest(f.Properties)
	deadline := time.Now().Add(min(s.scan.time, s.cfg.QueryTimeout/2))
	var out []Record
	pacer := scan.PacerOf(ctx)
	for read := 0; ; {
		if err := scan.Yield(ctx); err != nil {
			return nil, Cursor{}, err
		}
		rows, err := s.backend.List(ctx, projectID, f, s.scan.page)
		if err != nil {
			return nil, Cursor{}, err
		}
		for i := range rows {
			pacer.Pace()
			if !passes.match(&rows[i]) {
				continue
			}
			if len(out) == limit {
				return out, out[limit-1].cursor(), nil
			}
			out = append(out, rows[i])
		}
		if len(rows) < s.scan.page {
			return out, Cursor{}, nil
		}
		f.Cursor = rows[len(rows)-1].cursor()
		if read += len(rows); read >= s.scan.events || time.Now().After(deadline) {
			return out, f.Cursor, nil
		}
	}
}

// propertyTest evaluates property filters on events.
type propertyTest struct {
	event, person *propertyfilter.All
	persons       bool // there are filters of person properties
}

func newPropertyTest(items []propertyfilter.Item) *propertyTest {
	var events, persons []*match.Filter
	for _, item := range items {
		if item.Kind == PersonProperty {
			persons = append(persons, item.Filter)
		} else {
			events = append(events, item.Filter)
		}
	}
	env := match.Env{Now: time.Now()}
	return &propertyTest{propertyfilter.NewAll(events, env), propertyfilter.NewAll(persons, env), len(persons) > 0}
}

func (t *propertyTest) match(row *Record) bool {
	if !t.event.Match([]byte(row.Properties)) {
		return false
	}
	if !t.persons {
		return true
	}
	properties := "{}" // of an event without a person
	if row.PersonProperties != nil {
		properties = *row.PersonProperties
	}
	return t.person.Match([]byte(properties))
}

package events

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/db/scan"
	"github.com/guidonhq/guidon/core/events/propertytest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
)

// scanBudget bounds the work of one list with property filters, which reads
// events in pages, in the order of the list, and evaluates the filters in Go. The
// cursor then continues behind the last event that was read.
type scanBudget struct {
	events int           // no page starts after this many events
	page   int           // events of a page
	time   time.Duration // no page starts after this time
}

// maxFilterWork is the work on texts that the filters of one request may cause, in units of
// match.Budget: about three seconds at worst.
const maxFilterWork = 300_000_000

var errFilterWork = fault.Field("properties", "filter_too_expensive",
	"Comparing the properties of an event with these filters takes too much work, or a text is too long for a regular expression. Use fewer or simpler filters, or start behind it.")

var defaultScan = scanBudget{events: 20_000, page: 1000, time: 5 * time.Second}

// Kinds of properties that filters of a list read: of the event, and of its
// current person.
const (
	EventProperty  = "event"
	PersonProperty = propertytest.Person
)

// search returns at most limit events that pass the property filters of f, and
// the cursor behind them or behind the last event read.
func (s *Service) search(ctx context.Context, projectID int64, f Filter, limit int) ([]Record, Cursor, error) {
	var budget match.Budget
	budget.Reset(maxFilterWork)
	test := propertytest.New(f.Properties, match.Env{Now: time.Now(), Budget: &budget})
	first := true // no event was tested
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
			ok := test.Match(rows[i].Properties, rows[i].PersonProperties)
			switch {
			case !ok && budget.Refusal() != match.NotRefused && first:
				return nil, Cursor{}, errFilterWork
			case !ok && budget.Refusal() != match.NotRefused:
				return out, f.Cursor, nil // the next page begins with this event and a new budget
			case ok && len(out) == limit:
				return out, out[limit-1].cursor(), nil
			case ok:
				out = append(out, rows[i])
			}
			first, f.Cursor = false, rows[i].cursor()
		}
		if len(rows) < s.scan.page {
			return out, Cursor{}, nil
		}
		if read += len(rows); read >= s.scan.events || time.Now().After(deadline) {
			return out, f.Cursor, nil
		}
	}
}

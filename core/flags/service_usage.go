package flags

import (
	"context"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/auth"
)

// Usage counts the stored events that clients report about flags.
type Usage interface {
	// Counts counts the events of q from one time up to another, for each
	// interval and value of the breakdown that has any, ascending. It keeps to
	// the deadline of ctx.
	Counts(ctx context.Context, q UsageQuery) ([]Count, error)
}

// UsageQuery says which events are counted, and how.
type UsageQuery struct {
	ProjectID int64
	Event     string
	Property  string // only events whose property has the text Value
	Value     string
	Breakdown string // property whose texts are told apart; empty tells none
	From, To  time.Time
	Interval  time.Duration // the first begins at From
}

// Count is how many events there were in one interval with one value, and by
// how many people.
type Count struct {
	Start  time.Time
	Value  string
	Events int64
	People int64
}

// span is the days a tile or a usage report is about.
type span struct {
	from, to time.Time
	days     []string
}

const day = 24 * time.Hour

// lastDays is the last n days of a project up to now, today among them.
func lastDays(now time.Time, location *time.Location, n int) span {
	now = now.In(location)
	first := time.Date(now.Year(), now.Month(), now.Day()-n+1, 0, 0, 0, 0, location)
	s := span{from: first, to: first.Add(time.Duration(n) * day)}
	for i := range n {
		s.days = append(s.days, first.AddDate(0, 0, i).Format(time.DateOnly))
	}
	return s
}

// place is which of the days a count is of.
func (s span) place(c Count) int {
	return min(max(int(c.Start.Sub(s.from)/day), 0), len(s.days)-1)
}

// line is the counts of one value over the days of a span.
type line struct {
	value  string
	events []int64
	people []int64
	total  Count // over the whole span; people each once
}

// lines asks for the counts of each value, the most called first.
func (s *Service) lines(ctx context.Context, q UsageQuery, sp span) ([]*line, error) {
	q.From, q.To, q.Interval = sp.from, sp.to, day
	daily, err := s.deps.Usage.Counts(ctx, q)
	if err != nil {
		return nil, err
	}
	q.Interval = sp.to.Sub(sp.from)
	whole, err := s.deps.Usage.Counts(ctx, q)
	if err != nil {
		return nil, err
	}
	byValue := map[string]*line{}
	lines := []*line{}
	of := func(value string) *line {
		if byValue[value] == nil {
			byValue[value] = &line{value: value, events: make([]int64, len(sp.days)), people: make([]int64, len(sp.days))}
			lines = append(lines, byValue[value])
		}
		return byValue[value]
	}
	for _, c := range daily {
		of(c.Value).events[sp.place(c)] += c.Events
		of(c.Value).people[sp.place(c)] += c.People
	}
	for _, c := range whole {
		of(c.Value).total = c
	}
	slices.SortStableFunc(lines, func(a, b *line) int { return int(b.total.Events - a.total.Events) })
	return lines, nil
}

// UsageReport is how a flag was asked for over some days.
type UsageReport struct {
	LastCalled time.Time
	Days       []string
	Lines      []*line
}

// FlagUsage reports how often a flag was asked for over the last days, by
// answer. It fails with NotFound.
func (s *Service) FlagUsage(ctx context.Context, project auth.Project, id int64, days int) (*UsageReport, error) {
	f, err := s.store.flag(ctx, project.ID, id)
	if err != nil {
		return nil, err
	}
	sp := lastDays(s.now(), project.Location(), days)
	report := &UsageReport{LastCalled: f.LastCalled, Days: sp.days, Lines: []*line{}}
	if s.deps.Usage == nil {
		return report, nil
	}
	q := UsageQuery{ProjectID: project.ID, Event: eventCalled, Property: propertyFlag, Value: liveKey(f), Breakdown: propertyResponse}
	report.Lines, err = s.lines(ctx, q, sp)
	return report, err
}

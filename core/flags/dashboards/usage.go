package dashboards

import (
	"context"
	"slices"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/flags/calls"
)

// span is a range of days.
type span struct {
	from, to time.Time
	days     []string
}

const day = 24 * time.Hour

// lastDays returns the last n days in a time zone, today included.
func lastDays(now time.Time, location *time.Location, n int) span {
	now = now.In(location)
	first := time.Date(now.Year(), now.Month(), now.Day()-n+1, 0, 0, 0, 0, location)
	s := span{from: first, to: first.Add(time.Duration(n) * day)}
	for i := range n {
		s.days = append(s.days, first.AddDate(0, 0, i).Format(time.DateOnly))
	}
	return s
}

// place returns the index of the day of a count.
func (s span) place(c events.Count) int {
	return min(max(int(c.Start.Sub(s.from)/day), 0), len(s.days)-1)
}

// Line is the counts of one value, one per day.
type Line struct {
	Value  string
	Events []int64
	People []int64
	Total  events.Count // over all days; each person once
}

// countLines counts the events of each value, the most frequent first.
func (s *Service) countLines(ctx context.Context, q events.CountQuery, sp span) ([]*Line, error) {
	q.From, q.To, q.Interval = sp.from, sp.to, day
	daily, err := s.deps.Events.Counts(ctx, q)
	if err != nil {
		return nil, err
	}
	q.Interval = sp.to.Sub(sp.from)
	whole, err := s.deps.Events.Counts(ctx, q)
	if err != nil {
		return nil, err
	}
	byValue := map[string]*Line{}
	lines := []*Line{}
	of := func(value string) *Line {
		if byValue[value] == nil {
			byValue[value] = &Line{Value: value, Events: make([]int64, len(sp.days)), People: make([]int64, len(sp.days))}
			lines = append(lines, byValue[value])
		}
		return byValue[value]
	}
	for _, c := range daily {
		of(c.Value).Events[sp.place(c)] += c.Events
		of(c.Value).People[sp.place(c)] += c.People
	}
	for _, c := range whole {
		of(c.Value).Total = c
	}
	slices.SortStableFunc(lines, func(a, b *Line) int { return int(b.Total.Events - a.Total.Events) })
	return lines, nil
}

// Usage is how often a flag was called over some days, by response.
type Usage struct {
	Days  []string // dates in the time zone of the project, ascending
	Lines []*Line  // the most called first
}

// FlagUsage counts the calls of a flag over the last days. key is its key in
// events.
func (s *Service) FlagUsage(ctx context.Context, project auth.Project, key string, days int) (*Usage, error) {
	sp := lastDays(s.deps.Now(), project.Location(), days)
	usage := &Usage{Days: sp.days, Lines: []*Line{}}
	if s.deps.Events == nil {
		return usage, nil
	}
	q := events.CountQuery{ProjectID: project.ID, Event: calls.Event, Property: calls.KeyProperty, Value: key, Breakdown: propertyResponse}
	var err error
	usage.Lines, err = s.countLines(ctx, q, sp)
	return usage, err
}

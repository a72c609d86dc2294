package schedule

import (
	"fmt"
	"time"
)

// Retention is the number of backups that are kept: the newest ones, and the newest of
// each of the last days, weeks and months that have backups, in UTC. The zero value
// keeps all.
type Retention struct{ Last, Daily, Weekly, Monthly int }

// expired returns the backups of a list that are not kept. The list has the newest
// first, which is always kept.
func (r Retention) expired(list []Backup) (out []Backup) {
	if r == (Retention{}) {
		return nil
	}
	rules := []struct {
		left   int
		period func(time.Time) string
		before string
	}{
		{left: r.Daily, period: func(t time.Time) string { return t.Format(time.DateOnly) }},
		{left: r.Weekly, period: func(t time.Time) string { return fmt.Sprint(t.ISOWeek()) }},
		{left: r.Monthly, period: func(t time.Time) string { return t.Format("2006-01") }},
	}
	for i, b := range list {
		keep := i == 0 || i < r.Last
		for k := range rules {
			rule := &rules[k]
			if period := rule.period(b.At.UTC()); rule.left > 0 && period != rule.before {
				rule.left, rule.before, keep = rule.left-1, period, true
			}
		}
		if !keep {
			out = append(out, b)
		}
	}
	return out
}

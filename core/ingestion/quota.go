package ingestion

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// QuotaConfig is how many events a project may send in a period. The zero
// value, and a limit of 0, do not limit.
type QuotaConfig struct {
	// Events is the limit of every project that has none of its own.
	Events int64 `koanf:"events"`
	// Period is what is counted: hour, day or month, in UTC.
	Period string `koanf:"period"`
	// Projects are limits by the number of the project; 0 is no limit.
	Projects map[string]int64 `koanf:"projects"`
}

// The periods of a quota.
const (
	PerHour  = "hour"
	PerDay   = "day"
	PerMonth = "month"
)

func (q QuotaConfig) validate() error {
	var errs []error
	if q.Events < 0 {
		errs = append(errs, fmt.Errorf("ingestion.quota.events must not be negative, got %d", q.Events))
	}
	switch q.Period {
	case PerHour, PerDay, PerMonth:
	default:
		errs = append(errs, fmt.Errorf("ingestion.quota.period must be hour, day or month, got %q", q.Period))
	}
	for id, n := range q.Projects {
		if _, err := strconv.ParseInt(id, 10, 64); err != nil || n < 0 {
			errs = append(errs, fmt.Errorf("ingestion.quota.projects: %s: %d must be a project's number and a limit of 0 or more", id, n))
		}
	}
	return errors.Join(errs...)
}

// on reports whether any project has a limit.
func (q QuotaConfig) on() bool { return q.Events > 0 || len(q.Projects) > 0 }

// limit returns the limit of a project, 0 for none.
func (q QuotaConfig) limit(projectID int64) int64 {
	if n, ok := q.Projects[strconv.FormatInt(projectID, 10)]; ok {
		return n
	}
	return q.Events
}

// span returns the period that t is in.
func (q QuotaConfig) span(t time.Time) (from, to time.Time) {
	t = t.UTC()
	switch q.Period {
	case PerHour:
		from = t.Truncate(time.Hour)
		return from, from.Add(time.Hour)
	case PerDay:
		from = time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
		return from, from.AddDate(0, 0, 1)
	default:
		from = time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
		return from, from.AddDate(0, 1, 0)
	}
}

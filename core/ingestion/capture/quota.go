package capture

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// QuotaConfig limits the events of a project in a period. The zero value, and a
// limit of 0, are no limit.
type QuotaConfig struct {
	// Events is the limit of each project without one of its own.
	Events int64 `koanf:"events"`
	// Period is hour, day or month, in UTC.
	Period string `koanf:"period"`
	// Projects are limits by project id; 0 is no limit.
	Projects map[string]int64 `koanf:"projects"`
}

// The periods of a quota.
const (
	PerHour  = "hour"
	PerDay   = "day"
	PerMonth = "month"
)

// Validate returns an error that names every invalid option by its key.
func (q QuotaConfig) Validate() error {
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

// enabled reports whether any project has a limit.
func (q QuotaConfig) enabled() bool { return q.Events > 0 || len(q.Projects) > 0 }

// limit returns the limit of a project, 0 for none.
func (q QuotaConfig) limit(projectID int64) int64 {
	if len(q.Projects) == 0 {
		return q.Events
	}
	if n, ok := q.Projects[strconv.FormatInt(projectID, 10)]; ok {
		return n
	}
	return q.Events
}

// span returns the period that contains t.
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

package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/guidonhq/guidon/sdk"
)

// plan is a schedule, ready to be compared with a time.
type plan struct {
	zone         *time.Location
	zoneOf       string
	since, until time.Time // zero: no bound
	windows      []window  // none: always
}

// window is a span of the day on some days.
type window struct {
	days     [7]bool // by time.Weekday
	from, to int     // minutes of the day; to may be beyond its end
}

const day = 24 * 60

var (
	errOnlyNow = errors.New("only schedule/now can look up a time zone")
	errMinute  = errors.New("want whole minutes: schedules are looked at once a minute")
)

// holds reports whether a time is in the schedule.
func (p *plan) holds(at time.Time, zone *time.Location) bool {
	if !p.since.IsZero() && at.Before(p.since) || !p.until.IsZero() && !at.Before(p.until) {
		return false
	}
	if len(p.windows) == 0 {
		return true
	}
	local := at.In(zone)
	minute, today := local.Hour()*60+local.Minute(), local.Weekday()
	for _, w := range p.windows {
		if w.days[today] && minute >= w.from && minute < w.to || w.days[(today+6)%7] && minute+day >= w.from && minute+day < w.to {
			return true
		}
	}
	return false
}

// read reads the value of a filter.
func read(value json.RawMessage) (*plan, error) {
	var in struct {
		TimeZone   string `json:"time_zone"`
		TimeZoneOf string `json:"time_zone_of"`
		Since      string `json:"since"`
		Until      string `json:"until"`
		Windows    []struct {
			Days     []string `json:"days"`
			From, To string
		} `json:"windows"`
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, sdk.ValueError("", err)
	}
	p := &plan{zone: time.UTC, zoneOf: in.TimeZoneOf}
	var errs []error
	note := func(pointer string, err error) {
		if err != nil {
			errs = append(errs, sdk.ValueError(pointer, err))
		}
	}
	var err error
	if in.TimeZone != "" {
		p.zone, err = location(in.TimeZone)
		note("/time_zone", err)
	}
	p.since, err = bound(in.Since, p.zone)
	note("/since", err)
	p.until, err = bound(in.Until, p.zone)
	note("/until", err)
	if !p.since.IsZero() && !p.until.IsZero() && !p.since.Before(p.until) {
		note("/until", errors.New("is not after since"))
	}
	for i, w := range in.Windows {
		made, field, err := readWindow(w.Days, w.From, w.To)
		note(fmt.Sprintf("/windows/%d%s", i, field), err)
		p.windows = append(p.windows, made)
	}
	return p, errors.Join(errs...)
}

var (
	zonesMu sync.Mutex
	zones   = map[string]*time.Location{}
)

// maxZones is more than there are.
const maxZones = 1000

// location finds a time zone by its name, and remembers it.
func location(name string) (*time.Location, error) {
	zonesMu.Lock()
	defer zonesMu.Unlock()
	if z, ok := zones[name]; ok {
		return z, nil
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("%q is not a time zone such as Europe/Berlin", name)
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone such as Europe/Berlin", name)
	}
	if len(zones) < maxZones {
		zones[name] = z
	}
	return z, nil
}

// bound reads a date with a time, in the schedule's zone when it has none.
func bound(text string, zone *time.Location) (time.Time, error) {
	if text == "" || zone == nil {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if err != nil {
			at, err = time.ParseInLocation(layout, text, zone)
		}
	}
	switch {
	case err != nil:
		return at, fmt.Errorf("%q is not a date with a time such as 2026-03-02T09:00", text)
	case at.Second() != 0 || at.Nanosecond() != 0:
		return at, errMinute
	}
	return at, nil
}

func readWindow(days []string, from, to string) (w window, field string, err error) {
	if len(days) == 0 {
		days = []string{"mon-sun"}
	}
	for i, text := range days {
		if err := w.add(text); err != nil {
			return w, fmt.Sprintf("/days/%d", i), err
		}
	}
	w.to = day
	if from != "" {
		if w.from, err = minutes(from); err != nil {
			return w, "/from", err
		}
	}
	if to != "" {
		if w.to, err = minutes(to); err != nil {
			return w, "/to", err
		}
	}
	if w.to <= w.from {
		w.to += day
	}
	return w, "", nil
}

var weekdays = map[string]time.Weekday{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}

// add takes a day or a span of days; one may go over the end of the week.
func (w *window) add(text string) error {
	first, last, span := strings.Cut(strings.ToLower(strings.TrimSpace(text)), "-")
	if !span {
		last = first
	}
	from, ok := weekdays[first]
	to, ok2 := weekdays[last]
	if !ok || !ok2 {
		return fmt.Errorf("%q is neither a day (mon to sun) nor a span of days such as mon-fri", text)
	}
	for d := from; ; d = (d + 1) % 7 {
		w.days[d] = true
		if d == to {
			return nil
		}
	}
}

// minutes reads a time of the day; 24:00 is its end.
func minutes(text string) (int, error) {
	if text == "24:00" {
		return day, nil
	}
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of the day such as 09:30", text)
	}
	return t.Hour()*60 + t.Minute(), nil
}

package event

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseTime parses a time in any form that clients send: RFC 3339 with its
// shortcuts, dates alone, ISO weeks and ordinal dates, RFC 2822, and seconds or
// milliseconds since 1970. A time without a zone is UTC. The result is truncated
// to microseconds.
func ParseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 8 {
		return time.Time{}, false
	}
	if t, ok := parseISO(s); ok {
		return t, true
	}
	if t, ok := parseEpoch(s); ok {
		return t, true
	}
	return parseMail(s)
}

// parseEpoch parses seconds since 1970, or milliseconds from 1e11 on.
func parseEpoch(s string) (time.Time, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f < 1e8 || f > 1e15 {
		return time.Time{}, false
	}
	if f < 1e11 {
		f *= 1000
	}
	return time.UnixMicro(int64(f * 1000)).UTC(), true
}

var mailLayouts = []string{
	"Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 MST", "Mon, 2 Jan 2006 15:04 -0700",
	"2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 MST",
}

func parseMail(s string) (time.Time, bool) {
	for _, layout := range mailLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// clip parses the parts of a time from the front of a text.
type clip struct {
	s  string
	ok bool
}

// digits cuts n digits off.
func (c *clip) digits(n int) int {
	if len(c.s) < n {
		c.ok = false
		return 0
	}
	v := 0
	for i := range n {
		d := c.s[i] - '0'
		if d > 9 {
			c.ok = false
			return 0
		}
		v = v*10 + int(d)
	}
	c.s = c.s[n:]
	return v
}

// take cuts off one byte if it is in set, and returns it, else 0.
func (c *clip) take(set string) byte {
	if c.s == "" || strings.IndexByte(set, c.s[0]) < 0 {
		return 0
	}
	b := c.s[0]
	c.s = c.s[1:]
	return b
}

func parseISO(s string) (time.Time, bool) {
	c := clip{s: s, ok: true}
	year := c.digits(4)
	sep := c.take("-/")
	if !c.ok || sep == 0 {
		return time.Time{}, false
	}
	day, ok := c.day(year, sep)
	if !ok {
		return time.Time{}, false
	}
	if c.s == "" {
		return day, true
	}
	if c.take("Tt ") == 0 {
		return time.Time{}, false
	}
	at, ok := c.clock()
	if !ok {
		return time.Time{}, false
	}
	zone, ok := c.zone()
	return day.Add(at - zone), ok && c.s == ""
}

// day parses the rest of a date after the year: month and day, week and weekday,
// or day of the year.
func (c *clip) day(year int, sep byte) (time.Time, bool) {
	if c.take("W") != 0 {
		week, weekday := c.digits(2), 1
		if c.take("-") != 0 {
			weekday = c.digits(1)
		}
		return isoWeek(year, week, weekday), c.ok && week >= 1 && week <= 53 && weekday >= 1 && weekday <= 7
	}
	if len(c.s) >= 3 && c.s[2]-'0' < 10 {
		n := c.digits(3)
		t := time.Date(year, 1, n, 0, 0, 0, 0, time.UTC)
		return t, c.ok && n >= 1 && t.Year() == year
	}
	month := c.digits(2)
	if c.take("-/") != sep {
		return time.Time{}, false
	}
	day := c.digits(2)
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	return t, c.ok && month >= 1 && month <= 12 && day >= 1 && t.Day() == day
}

// isoWeek returns the weekday (1 is Monday) of a week; week 1 has 4 January.
func isoWeek(year, week, weekday int) time.Time {
	jan4 := time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC)
	monday := (int(jan4.Weekday()) + 6) % 7
	return jan4.AddDate(0, 0, (week-1)*7+weekday-1-monday)
}

// clock parses hours and minutes, with seconds and a fraction if they follow.
func (c *clip) clock() (time.Duration, bool) {
	h := c.digits(2)
	if c.take(":") == 0 {
		return 0, false
	}
	m, sec, micro := c.digits(2), 0, 0
	if c.take(":") != 0 {
		sec = c.digits(2)
		if c.take(".,") != 0 {
			micro = c.fraction()
		}
	}
	at := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(sec)*time.Second
	return at + time.Duration(micro)*time.Microsecond, c.ok && h <= 23 && m <= 59 && sec <= 60
}

// fraction parses the digits after the decimal point, truncated to microseconds.
func (c *clip) fraction() int {
	n, v := 0, 0
	for ; n < len(c.s) && c.s[n]-'0' < 10; n++ {
		if n < 6 {
			v = v*10 + int(c.s[n]-'0')
		}
	}
	if n == 0 {
		c.ok = false
	}
	for i := n; i < 6; i++ {
		v *= 10
	}
	c.s = c.s[n:]
	return v
}

// zone parses Z, UTC, GMT or an offset such as +03, +0300 or +03:00.
func (c *clip) zone() (time.Duration, bool) {
	c.s = strings.TrimLeft(c.s, " ")
	switch c.s {
	case "", "Z", "z", "UTC", "GMT":
		c.s = ""
		return 0, true
	}
	sign := c.take("+-")
	h, m := c.digits(2), 0
	if c.take(":") != 0 || c.s != "" {
		m = c.digits(2)
	}
	d := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if sign == '-' {
		d = -d
	}
	return d, c.ok && sign != 0 && h <= 23 && m <= 59
}

package match

import (
	"math"
	"time"
)

// instant reads a value as a point in time. A number or a numeric text is
// seconds since 1970, or milliseconds if it is larger than 1e11; a text of four
// digits is a year; other texts are dates.
func instant(v *Value, location *time.Location) (time.Time, bool) {
	if v.kind != String && v.kind != Number {
		return time.Time{}, false
	}
	if n, ok := v.whole(); ok && (v.kind == Number || len(v.text) != 4) {
		return epoch(n)
	}
	return parseDate(trimSpace(v.text), location)
}

// epoch converts a number of seconds or milliseconds since 1970 to a time. 1e11
// seconds is the year 5138; larger numbers are milliseconds.
func epoch(n float64) (time.Time, bool) {
	const milliseconds, beyond = 1e11, 9e15
	switch size := math.Abs(n); {
	case size >= beyond:
		return time.Time{}, false
	case size >= milliseconds:
		n /= 1000
	}
	whole := math.Floor(n)
	return time.Unix(int64(whole), int64(math.Round((n-whole)*1e9))).UTC(), true
}

// layouts lists the supported forms besides ISO 8601. All are rare.
var layouts = []string{
	time.RFC1123, time.RFC1123Z, time.RFC850, time.RFC822, time.RFC822Z, time.ANSIC, time.UnixDate, time.RubyDate,
	"2006/01/02", "2006/1/2", "2006/01/02 15:04", "2006/01/02 15:04:05", "1/2/2006", "1/2/2006 15:04", "1/2/2006 15:04:05",
	"January 2, 2006", "Jan 2, 2006", "2 January 2006", "2 Jan 2006", "January 2, 2006 15:04", "Jan 2, 2006 15:04",
	"January 2, 2006 15:04:05", "Jan 2, 2006 15:04:05", "2 January 2006 15:04:05", "2 Jan 2006 15:04:05",
	"Mon Jan 2 2006 15:04:05 GMT-0700", "Mon Jan 2 2006",
}

// parseDate reads a date; without an offset it is in the given location.
func parseDate(s string, location *time.Location) (time.Time, bool) {
	if len(s) >= 4 && digits(s, 0) == 4 && (len(s) == 4 || s[4] == '-') {
		return parseISO(s, location)
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, s, location); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// parseISO reads YYYY[-MM[-DD]] and, after a T or a space, HH:MM[:SS[.f]] with
// an optional offset. It is written by hand because it is on the hot path of
// evaluation and must not allocate.
func parseISO(s string, location *time.Location) (time.Time, bool) {
	p := isoReader{s: s, good: true}
	year := p.number(4)
	month, day := 1, 1
	if p.take('-') {
		month = p.number(2)
		if p.take('-') {
			day = p.number(2)
		}
	}
	if p.s == "" {
		return p.date(year, month, day, 0, 0, 0, 0, location)
	}
	if !p.take('T') && !p.take('t') && !p.take(' ') {
		return time.Time{}, false
	}
	hour := p.number(2)
	p.good = p.good && p.take(':')
	minute, second, nanos := p.number(2), 0, 0
	if p.take(':') {
		second = p.number(2)
		if p.take('.') || p.take(',') {
			nanos = p.fraction()
		}
	}
	return p.date(year, month, day, hour, minute, second, nanos, p.zone(location))
}

type isoReader struct {
	s    string
	good bool
}

func (p *isoReader) take(c byte) bool {
	if p.s == "" || p.s[0] != c {
		return false
	}
	p.s = p.s[1:]
	return true
}

func (p *isoReader) number(width int) int {
	if len(p.s) < width || digits(p.s[:width], 0) != width {
		p.good = false
		return 0
	}
	n := 0
	for i := range width {
		n = n*10 + int(p.s[i]-'0')
	}
	p.s = p.s[width:]
	return n
}

func (p *isoReader) fraction() int {
	n := digits(p.s, 0)
	p.good = p.good && n > 0
	nanos := 0
	for i := range 9 {
		nanos *= 10
		if i < n {
			nanos += int(p.s[i] - '0')
		}
	}
	p.s = p.s[n:]
	return nanos
}

// zone reads the offset at the end: Z, +hh:mm, +hhmm or +hh, with an optional
// space before it.
func (p *isoReader) zone(location *time.Location) *time.Location {
	if p.take(' '); p.s == "" {
		return location
	}
	if p.take('Z') || p.take('z') {
		return time.UTC
	}
	minus := p.take('-')
	if !minus && !p.take('+') {
		p.good = false
		return location
	}
	offset := p.number(2) * 3600
	if p.take(':') || p.s != "" {
		offset += p.number(2) * 60
	}
	if minus {
		offset = -offset
	}
	return p.fixed(offset)
}

// fixed returns the location of an offset. It allocates none for UTC, the offset
// of nearly all dates.
func (p *isoReader) fixed(offset int) *time.Location {
	if offset == 0 {
		return time.UTC
	}
	return time.FixedZone("", offset)
}

func (p *isoReader) date(year, month, day, hour, minute, second, nanos int, location *time.Location) (time.Time, bool) {
	if !p.good || p.s != "" || month < 1 || month > 12 || hour > 24 || minute > 59 || second > 60 ||
		day < 1 || day > time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day() {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nanos, location), true
}

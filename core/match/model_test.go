package match_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/match"
)

// The tests of this file hold operators against models that are written with regular expressions and the standard library
// alone, on texts that are made up: right ones in all their forms, and right ones with a slip of the pen.

// maker makes up texts.
type maker struct{ *rand.Rand }

func newMaker(seed uint64) maker { return maker{rand.New(rand.NewPCG(seed, 7))} }

func (m maker) pick(from ...string) string { return from[m.IntN(len(from))] }

// slip replaces, removes or inserts one character.
func (m maker) slip(s, alphabet string) string {
	if s == "" {
		return s
	}
	at, c := m.IntN(len(s)), string(alphabet[m.IntN(len(alphabet))])
	switch m.IntN(3) {
	case 0:
		return s[:at] + c + s[at+1:]
	case 1:
		return s[:at] + s[at+1:]
	}
	return s[:at] + c + s[at:]
}

// rounds returns how often a test makes something up: a third of n with -short.
func rounds(n int) int {
	if testing.Short() {
		return n / 3
	}
	return n
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// holdsFilter reports whether a property passes a filter, and whether the filter has a valid value.
func holdsFilter(t *testing.T, operator, filter, property string, location *time.Location, at time.Time) (passes, valid bool) {
	t.Helper()
	f, err := match.Compile(match.Spec{Key: "p", Operator: operator, Value: []byte(filter)}, match.Options{Location: location})
	if err != nil {
		t.Fatalf("compile %s %s: %v", operator, filter, err)
	}
	v, err := match.Parse([]byte(property))
	if err != nil {
		t.Fatalf("parse %s: %v", property, err)
	}
	return f.Match(&v, &match.Env{Now: at}) == match.True, f.Problem() == nil
}

var (
	modelISO    = regexp.MustCompile(`^(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?: ?(?:([Zz])|([+-]\d\d)(?::?(\d\d))?))?)?$`)
	modelNumber = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$`)
	modelPrefix = regexp.MustCompile(`^[ \t\n\v\f\r]*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)`)
	modelSemver = regexp.MustCompile(`^[vV]?(\d+)(?:\.(\d*)(?:\.(\d*)(?:\.[^+-]*)?)?)?(?:[+-].*)?$`)
	modelAgo    = regexp.MustCompile(`^-?0*(\d{1,4})([hdwmy])$`)
)

// modelInstant reads ISO dates, and numbers without white space.
func modelInstant(s string, location *time.Location) (time.Time, bool) {
	if modelNumber.MatchString(s) && len(s) != 4 {
		n, err := strconv.ParseFloat(s, 64)
		switch size := math.Abs(n); {
		case err != nil || size >= 9e15:
			return time.Time{}, false
		case size >= 1e11:
			return time.UnixMicro(int64(math.Round(n * 1000))), true
		}
		return time.UnixMicro(int64(math.Round(n * 1e6))), true
	}

	s = strings.TrimSpace(s)
	part := modelISO.FindStringSubmatch(s)
	if part == nil || len(s) > 4 && s[4] != '-' {
		return time.Time{}, false
	}
	number := func(i, otherwise int) int {
		if part[i] == "" {
			return otherwise
		}
		n, _ := strconv.Atoi(part[i])
		return n
	}
	year, month, day, hour, minute, second := number(1, 0), number(2, 1), number(3, 1), number(4, 0), number(5, 0), number(6, 0)
	nanos, _ := strconv.Atoi((part[7] + "000000000")[:9])
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 24 || minute > 59 || second > 60 {
		return time.Time{}, false
	}
	switch {
	case part[8] != "":
		location = time.UTC
	case part[9] != "":
		seconds := number(10, 0) * 60
		hours, _ := strconv.Atoi(part[9][1:])
		if seconds += hours * 3600; part[9][0] == '-' {
			seconds = -seconds
		}
		location = time.FixedZone("", seconds)
	}
	return time.Date(year, time.Month(month), day, hour, minute, second, nanos, location), true
}

func daysIn(year, month int) int {
	switch {
	case month == 2 && (year%4 == 0 && year%100 != 0 || year%400 == 0):
		return 29
	case month == 2:
		return 28
	case slices.Contains([]int{4, 6, 9, 11}, month):
		return 30
	}
	return 31
}

// date makes up a date in ISO 8601.
func (m maker) date() string {
	s := m.pick("1969", "1999", "2000", "2023", "2024", "2100", "0001", "9999")
	if m.IntN(12) == 0 {
		return s
	}
	s += m.pick("-01", "-02", "-04", "-06", "-12", "-13", "-00")
	if m.IntN(12) > 0 {
		s += m.pick("-01", "-15", "-28", "-29", "-30", "-31", "-00", "-32")
	}
	if m.IntN(6) == 0 {
		return s
	}
	s += m.pick("T", "t", " ") + m.pick("00", "09", "12", "23", "24", "25") + ":" + m.pick("00", "30", "59", "60")
	if m.IntN(5) > 0 {
		s += m.pick(":00", ":07", ":59", ":60", ":61")
		if m.IntN(2) == 0 {
			s += m.pick(".", ",") + m.pick("5", "25", "125", "000001", "123456789", "1234567890123")
		}
	}
	if m.IntN(4) > 0 {
		s += m.pick("", " ") + m.pick("Z", "z", "+00:00", "-00:00", "+02:00", "-05:00", "-0330", "+0545", "-08", "+14", "-09:30", "+99:99")
	}
	return s
}

func TestDatesEqualTheModel(t *testing.T) {
	t.Parallel()
	m := newMaker(1)
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	valid := 0
	for range rounds(2_500) {
		s := m.date()
		switch m.IntN(8) {
		case 0, 1:
			s = m.slip(s, "0123456789-+:.,TtZz /")
		case 2:
			s = m.pick("", "-", "+") + m.pick("0", "1", "1717200000", "99999999999", "100000000000", "1717200000250", "8999999999999999", "9000000000000000", "1e9", "12345", "1234", "123", "1717200000.25", "-77.5", "5.")
		}
		for _, location := range []*time.Location{nil, newYork} {
			utc := location
			if utc == nil {
				utc = time.UTC
			}
			text := m.pick("", " ", "\t", "\r\n") + s + m.pick("", " ", "\n")
			want, ok := modelInstant(text, utc)
			if ok {
				valid++
			}
			checkDate(t, quote(text), location, want, ok)
		}
	}
	if valid < rounds(800) {
		t.Errorf("only %d dates are valid", valid)
	}
}

// checkDate compares a date with instants around the one that it should be.
func checkDate(t *testing.T, text string, location *time.Location, want time.Time, ok bool) {
	t.Helper()
	const second = "2006-01-02T15:04:05.999999999Z"
	year := want.UTC().Year()
	if ok && (year < 1 || year > 9998) {
		return // its neighbours cannot be written
	}
	for _, shift := range []time.Duration{-time.Microsecond, 0, time.Microsecond} {
		other := quote(want.Add(shift).UTC().Format(second))
		for operator, holds := range map[string]bool{"is_date_before": shift > 0, "is_date_exact": shift == 0, "is_date_after": shift < 0} {
			if got, _ := holdsFilter(t, operator, other, text, location, now); got != (ok && holds) {
				t.Fatalf("%s %s %s in %v: got %t (valid: %t)", text, operator, other, location, got, ok)
			}
			if operator != "is_date_exact" {
				holds = shift != 0 && !holds
			}
			if got, accepted := holdsFilter(t, operator, text, other, location, now); accepted != ok || got != (ok && holds) {
				t.Fatalf("%s %s %s in %v: got %t, accepted %t (valid: %t)", other, operator, text, location, got, accepted, ok)
			}
		}
	}
	if location == nil {
		if got, known := match.Instant([]byte(text)); known != ok || ok && !got.Equal(want) {
			t.Fatalf("the instant of %s is %s, %t", text, got, known)
		}
	}
}

func TestRareDatesEqualTheModel(t *testing.T) {
	t.Parallel()
	m := newMaker(2)
	tokyo := time.FixedZone("", 9*3600)
	west := time.FixedZone("", -(3*3600 + 1800))
	for range rounds(100) {
		at := time.Date(1970+m.IntN(90), time.Month(1+m.IntN(12)), 1+m.IntN(28), m.IntN(24), m.IntN(60), m.IntN(60), 0, tokyo)
		if m.IntN(2) == 0 {
			at = at.In(west)
		}
		minute, day := at.Truncate(time.Minute), time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, tokyo)
		local := func(u time.Time) time.Time {
			return time.Date(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), u.Second(), 0, tokyo)
		}
		for layout, want := range map[string]time.Time{
			// With an offset.
			"Mon, 02 Jan 2006 15:04:05 -0700": at, "02 Jan 06 15:04 -0700": minute, "Mon Jan 02 15:04:05 -0700 2006": at, "Mon Jan 2 2006 15:04:05 GMT-0700": at,
			// Without, in the location of the filter.
			"2006/01/02": day, "2006/1/2": day, "1/2/2006": day, "January 2, 2006": day, "Jan 2, 2006": day, "2 January 2006": day, "2 Jan 2006": day, "Mon Jan 2 2006": day,
			"2006/01/02 15:04": local(minute), "2006/01/02 15:04:05": local(at), "1/2/2006 15:04": local(minute), "1/2/2006 15:04:05": local(at),
			"January 2, 2006 15:04": local(minute), "Jan 2, 2006 15:04": local(minute), "January 2, 2006 15:04:05": local(at), "Jan 2, 2006 15:04:05": local(at),
			"2 January 2006 15:04:05": local(at), "2 Jan 2006 15:04:05": local(at), "Mon Jan _2 15:04:05 2006": local(at),
		} {
			if strings.Contains(layout, "06 15:04 -0700") && at.Year() >= 2069 {
				continue // two digits of the year
			}
			checkDate(t, quote(at.Format(layout)), tokyo, want, true)
		}
	}
}

// modelBefore is the instant of a relative date.
func modelBefore(count int, unit string, at time.Time) time.Time {
	year, month, day := at.Year(), int(at.Month()), at.Day()
	switch unit {
	case "h":
		return at.Add(-time.Duration(count) * time.Hour)
	case "d":
		return at.AddDate(0, 0, -count)
	case "w":
		return at.AddDate(0, 0, -7*count)
	case "m":
		for range count {
			if month--; month == 0 {
				year, month = year-1, 12
			}
			day = min(day, daysIn(year, month))
		}
	case "y":
		if year -= count; count > 0 && month == 2 {
			day = min(day, 28)
		}
	}
	return time.Date(year, time.Month(month), day, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
}

func TestRelativeDatesEqualTheModel(t *testing.T) {
	t.Parallel()
	m := newMaker(3)
	for range rounds(2_000) {
		at := time.Date(1990+m.IntN(60), time.Month(1+m.IntN(12)), 1, m.IntN(24), m.IntN(60), m.IntN(60), m.IntN(1e9), time.UTC).AddDate(0, 0, 24+m.IntN(7))
		s := m.pick("", "-") + m.pick("0", "1", "2", "11", "12", "13", "47", "007", "999", "9999", "10000", "00001", "") + m.pick("h", "d", "w", "m", "y", "s", "")
		part := modelAgo.FindStringSubmatch(s)
		if part == nil {
			if _, ok := modelInstant(s, time.UTC); !ok {
				if _, accepted := holdsFilter(t, "is_date_before", quote(s), `"2024-01-01"`, nil, at); accepted {
					t.Fatalf("%q is accepted", s)
				}
			}
			continue
		}

		count, _ := strconv.Atoi(part[1])
		want := modelBefore(count, part[2], at)
		if want.Year() < 1 {
			continue
		}
		for _, shift := range []time.Duration{-1, 0, 1} {
			property := quote(want.Add(shift).Format(time.RFC3339Nano))
			for operator, holds := range map[string]bool{"is_date_before": shift < 0, "is_date_exact": shift == 0, "is_date_after": shift > 0} {
				if got, accepted := holdsFilter(t, operator, quote(s), property, nil, at.In(time.FixedZone("", -5*3600))); got != holds || !accepted {
					t.Fatalf("%s %s %q at %s: got %t", property, operator, s, at, got)
				}
			}
		}
		if _, absolute := match.Instant([]byte(quote(s))); absolute {
			t.Fatalf("%q has an instant", s)
		}
	}
	for _, no := range []string{`true`, `null`, `["2024-01-01"]`, `{"a":1}`, `{`} {
		if _, ok := match.Instant([]byte(no)); ok {
			t.Errorf("%s has an instant", no)
		}
	}
}

// modelLeading is the number that a text begins with.
func modelLeading(s string) (float64, bool) {
	found := modelPrefix.FindStringSubmatch(s)
	if found == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(found[1], 64)
	return n, err == nil
}

// number makes up texts that begin with numbers, or nearly.
func (m maker) number() string {
	s := m.pick("", "", "", " ", "\t", "\v") + m.pick("", "", "+", "-", "--") + m.pick("", "0", "1", "5", "10", "007", "99") + m.pick("", "", ".", ".0", ".5", ".25", "..5") +
		m.pick("", "", "e1", "E5", "e+2", "E-1", "e", "e+", "e400", "e-400", "x1") + m.pick("", "", "", " ", " apples", "e")
	if m.IntN(4) == 0 {
		s = m.slip(s, "0123456789+-.eE \t/:")
	}
	return s
}

func TestNumbersEqualTheModel(t *testing.T) {
	t.Parallel()
	m := newMaker(4)
	for range rounds(3_000) {
		a, b := m.number(), m.number()
		order := strings.Compare(a, b)
		x, xOK := modelLeading(a)
		y, yOK := modelLeading(b)
		if xOK && yOK {
			order = cmp.Compare(x, y)
		}
		for operator, want := range map[string]bool{"gt": order > 0, "gte": order >= 0, "min": order >= 0, "lt": order < 0, "lte": order <= 0, "max": order <= 0} {
			if got, _ := holdsFilter(t, operator, quote(b), quote(a), nil, now); got != want {
				t.Fatalf("%q %s %q: got %t", a, operator, b, got)
			}
		}

		// between takes whole texts only.
		c := m.number()
		z, zOK := modelLeading(c)
		whole := func(s string, ok bool) bool { return ok && modelNumber.MatchString(s) }
		for operator, outside := range map[string]bool{"between": false, "not_between": true} {
			got, accepted := holdsFilter(t, operator, "["+quote(b)+","+quote(c)+"]", quote(a), nil, now)
			valid := whole(b, yOK) && whole(c, zOK)
			if accepted != valid || got != (valid && whole(a, xOK) && (y <= x && x <= z) != outside) {
				t.Fatalf("%q %s %q and %q: got %t, accepted %t", a, operator, b, c, got, accepted)
			}
		}
	}
}

// modelVersion reads a version; parts beyond 2^60 are equal.
func modelVersion(s string) ([]uint64, bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	found := modelSemver.FindStringSubmatch(s)
	if found == nil {
		return nil, false
	}
	var out []uint64
	for _, part := range found[1:4] {
		out = append(out, modelPart(part))
	}
	return out, true
}

func modelPart(s string) uint64 {
	n, err := strconv.ParseUint(cmp.Or(s, "0"), 10, 64)
	if err != nil || n > 1<<60 {
		return 1 << 60
	}
	return n
}

func (m maker) version() string {
	s := m.pick("", "", " ", "\n") + m.pick("", "", "v", "V", "vv") + m.pick("0", "0", "1", "2", "10", "99999999999999999999", "")
	for range m.IntN(5) {
		s += "." + m.pick("0", "0", "1", "2", "3", "10", "1152921504606846976", "1152921504606846977", "")
	}
	s += m.pick("", "", "-rc1", "+build.5", "-1.2+3", "-", "rc") + m.pick("", "", " ")
	if m.IntN(6) == 0 {
		s = m.slip(s, "0123456789.+-*vx ")
	}
	return s
}

func TestVersionsEqualTheModel(t *testing.T) {
	t.Parallel()
	m := newMaker(5)
	valid := 0
	for range rounds(3_000) {
		a, b := m.version(), m.version()
		if m.IntN(3) == 0 {
			b = m.slip(a, "0123456789")
		}
		x, xOK := modelVersion(a)
		y, yOK := modelVersion(b)
		order := slices.Compare(x, y)
		want := map[string]bool{"semver_eq": order == 0, "semver_neq": order != 0, "semver_gt": order > 0, "semver_gte": order >= 0, "semver_lt": order < 0, "semver_lte": order <= 0}
		if xOK && yOK {
			valid++
			same := func(parts int) bool { return order >= 0 && slices.Equal(x[:parts], y[:parts]) }
			want["semver_tilde"] = same(2)
			switch {
			case y[0] > 0:
				want["semver_caret"] = same(1)
			case y[1] > 0:
				want["semver_caret"] = same(2)
			default:
				want["semver_caret"] = same(3)
			}
		}
		for operator, want := range want {
			got, accepted := holdsFilter(t, operator, quote(b), quote(a), nil, now)
			if accepted != yOK || got != (want && xOK && yOK) {
				t.Fatalf("%q %s %q: got %t, accepted %t, want %t", a, operator, b, got, accepted, want && xOK && yOK)
			}
		}
	}
	if valid < rounds(800) {
		t.Errorf("only %d pairs are valid", valid)
	}
}

func TestWildcardsEqualTheModel(t *testing.T) {
	t.Parallel()
	m := newMaker(6)
	digits := regexp.MustCompile(`^\d+$`)
	for range rounds(4_000) {
		parts := make([]string, 1+m.IntN(4))
		for i := range parts {
			parts[i] = m.pick("0", "1", "1", "2", "*", "*", "x")
		}
		a := fmt.Sprintf("%d.%d.%d", m.IntN(3), m.IntN(3), m.IntN(3))
		x, _ := modelVersion(a)

		// Stars at the end stand for anything, and so does what follows the minor version.
		known := slices.Clone(parts)
		for len(known) > 0 && known[len(known)-1] == "*" {
			known = known[:len(known)-1]
		}
		want, valid := true, true
		for i, part := range known[:min(2, len(known))] {
			valid = valid && digits.MatchString(part)
			want = want && valid && modelPart(part) == x[i]
		}
		s := m.pick("", " ") + m.pick("", "v", "V") + strings.Join(parts, ".")
		if got, accepted := holdsFilter(t, "semver_wildcard", quote(s), quote(a), nil, now); got != (want && valid) || accepted != valid {
			t.Fatalf("%q semver_wildcard %q: got %t, accepted %t", a, s, got, accepted)
		}
	}
}

// TestTextsEqualTheModel compares short texts of letters in both cases, also with lists of them.
func TestTextsEqualTheModel(t *testing.T) {
	t.Parallel()
	m := newMaker(7)
	word := func() string {
		s := ""
		for range m.IntN(4) {
			s += m.pick("a", "A", "b", "B", "@", "`", "z", "Z", "[", "é", "0")
		}
		return s
	}
	lower := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "É", "é") }
	for range rounds(2_000) {
		v := word()
		list := make([]string, 1+m.IntN(12))
		for i := range list {
			list[i] = word()
		}
		raw, _ := json.Marshal(list)
		one := lower(list[0])
		find := func(found func(s, of string) bool) bool {
			return slices.ContainsFunc(list, func(item string) bool { return found(lower(v), lower(item)) })
		}
		equal := find(func(a, b string) bool { return a == b })
		for operator, c := range map[string]struct {
			filter string
			want   bool
		}{
			"exact": {string(raw), equal}, "is_not": {string(raw), !equal}, "": {quote(list[0]), lower(v) == one},
			"icontains": {quote(list[0]), strings.Contains(lower(v), one)}, "not_icontains": {quote(list[0]), !strings.Contains(lower(v), one)},
			"starts_with": {quote(list[0]), strings.HasPrefix(lower(v), one)}, "not_starts_with": {quote(list[0]), !strings.HasPrefix(lower(v), one)},
			"ends_with": {quote(list[0]), strings.HasSuffix(lower(v), one)}, "not_ends_with": {quote(list[0]), !strings.HasSuffix(lower(v), one)},
			"icontains_multi": {string(raw), find(strings.Contains)}, "not_icontains_multi": {string(raw), !find(strings.Contains)},
		} {
			if got, _ := holdsFilter(t, operator, c.filter, quote(v), nil, now); got != c.want {
				t.Fatalf("%q %s %s: got %t", v, operator, c.filter, got)
			}
		}
	}
}

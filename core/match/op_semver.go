package match

import (
	"strings"
	"time"
)

// version is major, minor and patch; other parts of a version are ignored.
type version [3]uint64

func (a version) compare(b version) int {
	for i := range a {
		switch {
		case a[i] < b[i]:
			return -1
		case a[i] > b[i]:
			return 1
		}
	}
	return 0
}

// parseVersion reads a version. It ignores surrounding white space, a leading v,
// further parts, pre-release and build; missing parts are 0.
func parseVersion(s string) (version, bool) {
	s = cutV(s)
	if i := strings.IndexAny(s, "-+"); i >= 0 {
		s = s[:i]
	}
	var out version
	if s == "" || s[0] == '.' {
		return out, false
	}
	for i := range out {
		part, rest, _ := strings.Cut(s, ".")
		n, ok := parsePart(part)
		if !ok {
			return out, false
		}
		out[i], s = n, rest
	}
	return out, true
}

func cutV(s string) string {
	s = trimSpace(s)
	if s != "" && (s[0] == 'v' || s[0] == 'V') {
		s = s[1:]
	}
	return s
}

// parsePart reads digits; an empty part is 0, a large one is capped.
func parsePart(s string) (uint64, bool) {
	const most = 1 << 60
	if digits(s, 0) != len(s) {
		return 0, false
	}
	var n uint64
	for i := range len(s) {
		if n = n*10 + uint64(s[i]-'0'); n >= most {
			n = most
		}
	}
	return n, true
}

// compileVersion compares two versions; an invalid one passes nothing.
func compileVersion(holds func(c int) bool) func(operand) (test, error) {
	return func(o operand) (test, error) {
		than, ok := parseVersion(loose(&o.value))
		if !ok {
			return never, o.problem("invalid_value", "it must be a version such as 1.2.3")
		}
		return func(v *Value, _ time.Time) bool {
			n, ok := parseVersion(loose(v))
			return ok && holds(n.compare(than))
		}, nil
	}
}

// compileRange passes versions from the lower bound to below the upper one.
func compileRange(bounds func(s string) (low, high version, ok bool)) func(operand) (test, error) {
	return func(o operand) (test, error) {
		low, high, ok := bounds(loose(&o.value))
		if !ok {
			return never, o.problem("invalid_value", "it must be a version such as 1.2.3, or for the wildcard such as 1.2.*")
		}
		return func(v *Value, _ time.Time) bool {
			n, ok := parseVersion(loose(v))
			return ok && n.compare(low) >= 0 && n.compare(high) < 0
		}, nil
	}
}

// tilde keeps the minor version: ~1.2.3 is 1.2.3 to below 1.3.0.
func tilde(s string) (low, high version, ok bool) {
	low, ok = parseVersion(s)
	return low, version{low[0], low[1] + 1}, ok
}

// caret keeps the leftmost part that is not 0: ^1.2.3 is below 2.0.0, ^0.2.3
// below 0.3.0, ^0.0.3 below 0.0.4.
func caret(s string) (low, high version, ok bool) {
	low, ok = parseVersion(s)
	switch {
	case low[0] > 0:
		high = version{low[0] + 1}
	case low[1] > 0:
		high = version{0, low[1] + 1}
	default:
		high = version{0, 0, low[2] + 1}
	}
	return low, high, ok
}

// wildcard reads 1.* (all of 1), 1.2.* (all of 1.2) and * (everything).
func wildcard(s string) (low, high version, ok bool) {
	s = cutV(s)
	for strings.HasSuffix(s, ".*") {
		s = strings.TrimSuffix(s, ".*")
	}
	if s = strings.TrimSuffix(s, "*"); s == "" {
		const most = 1<<64 - 1
		return version{}, version{most, most, most}, true
	}
	major, rest, two := strings.Cut(s, ".")
	minor, _, _ := strings.Cut(rest, ".")
	if low[0], ok = parsePart(major); !ok || major == "" {
		return low, high, false
	}
	if !two {
		return low, version{low[0] + 1}, true
	}
	if low[1], ok = parsePart(minor); !ok || minor == "" {
		return low, high, false
	}
	return low, version{low[0], low[1] + 1}, true
}

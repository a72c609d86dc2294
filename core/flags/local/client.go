package local

import (
	"strconv"
	"strings"
)

// Client is what a client library can evaluate itself. Flags that it would decide
// differently from the server are exported so that it asks the server. The zero
// value is a client that knows condition sets, cohorts and flag dependencies only.
type Client struct {
	// Current clients know holdouts, early exit, condition sets with a group type
	// of their own, cohorts with not_in, and bucketing by device.
	Current bool
	// GroupDependencies clients decide a flag of groups correctly when a flag of
	// persons depends on it.
	GroupDependencies bool
}

// clientsByAgent lists the clients whose evaluation is known, by their User-Agent:
// from a version on. Other clients and older versions are the zero Client.
var clientsByAgent = []struct {
	name  string
	since [3]int
	can   Client
}{
	{"posthog-node", [3]int{5, 70, 0}, Client{Current: true, GroupDependencies: true}},
	{"posthog-python", [3]int{7, 91, 0}, Client{Current: true}},
}

// ClientOf returns the client of a User-Agent.
func ClientOf(userAgent string) Client {
	name, rest, _ := strings.Cut(userAgent, "/")
	for _, c := range clientsByAgent {
		if version, ok := versionOf(rest); ok && name == c.name && !less(version, c.since) {
			return c.can
		}
	}
	return Client{}
}

// versionOf reads major.minor.patch at the start of a text.
func versionOf(text string) (version [3]int, ok bool) {
	text, _, _ = strings.Cut(text, " ")
	text, _, pre := strings.Cut(text, "-")
	parts := strings.Split(text, ".")
	if len(parts) != len(version) || pre {
		return version, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return version, false
		}
		version[i] = n
	}
	return version, true
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

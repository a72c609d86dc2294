package body

import (
	"strconv"
	"time"
)

// readSentAt reads the client's clock from the query, or else from the form.
func (p *Payload) readSentAt() {
	for _, name := range [...]string{"_", "sent_at"} {
		if s := p.Query(name); s != "" && p.SentAt.IsZero() {
			p.SentAt = parseClientClock(s)
		}
	}
	if p.SentAt.IsZero() && p.form.present {
		if p.SentAt = parseClientClock(p.Form("sent_at")); p.SentAt.IsZero() {
			p.SentAt = parseClientClock(p.Form("_"))
		}
	}
}

// parseClientClock parses the time in a query: milliseconds since 1970, or seconds
// with at most eleven digits, or RFC 3339. It returns the zero time for anything
// else and for times before 2020, because browsers put arbitrary numbers in _ to
// bypass caches.
func parseClientClock(s string) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t.UTC()
	}
	for i := range len(s) {
		if s[i] == '.' {
			s = s[:i]
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || len(s) > 15 {
		return time.Time{}
	}
	if len(s) <= 11 {
		n *= 1000
	}
	if t := time.UnixMilli(n).UTC(); t.Year() >= 2020 {
		return t
	}
	return time.Time{}
}

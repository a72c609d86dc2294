// Package notifications tells people in chat that an event fits an action.
//
// It follows the events behind the worker. What fits an action that posts is
// rendered at once, with the person as known at that moment, and written into a
// durable queue in the transaction of the cursor: a crash neither forgets a
// message nor writes one twice. From there each destination is served on its
// own, in order, with retries until the message expires (one that is tried again
// lets others pass); a destination that is slow or refuses holds up no other.
//
// Actions can match a thousand times a minute, and people cannot read that: per
// action and destination so many messages go out in so much time, and what is
// left out is counted and told with the next one. In quiet hours everything is
// left out and told at their end.
package notifications

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"
)

// Config is what an operator can say about notifications.
type Config struct {
	// Destinations are the names of the notifiers that get the messages of
	// actions that name none; empty is every notifier there is.
	Destinations []string `koanf:"destinations"`
	// Every and Burst are the rate of messages of one action to one
	// destination: one in so much time, and so many at once after a pause.
	Every time.Duration `koanf:"every"`
	Burst int           `koanf:"burst"`
	// ExpireAfter is when a message that could not be delivered is given up.
	ExpireAfter time.Duration `koanf:"expire_after"`
	// MaxAttempts is how often one is tried.
	MaxAttempts int `koanf:"max_attempts"`
	// RetryMin and RetryMax bound the growing pause between tries.
	RetryMin time.Duration `koanf:"retry_min"`
	RetryMax time.Duration `koanf:"retry_max"`
	// QuietHours is when nothing is sent, "22:00-07:00" in the time zone of
	// the project; "" is never.
	QuietHours string `koanf:"quiet_hours"`
	// SiteURL is where links in messages lead; "" makes none.
	SiteURL string `koanf:"site_url"`
	// DisplayNames are the person properties that name somebody, best first.
	DisplayNames []string `koanf:"display_names"`
	// KeepDeliveries is how long the log of deliveries can be read.
	KeepDeliveries time.Duration `koanf:"keep_deliveries"`
}

// DefaultConfig sends a message every ten seconds at most, five at once, and
// gives up after an hour.
func DefaultConfig() Config {
	return Config{
		Destinations: []string{}, Every: 10 * time.Second, Burst: 5, ExpireAfter: time.Hour, MaxAttempts: 20, RetryMin: time.Second, RetryMax: 5 * time.Minute,
		DisplayNames:   []string{"email", "Email", "name", "Name", "username", "Username", "UserName"},
		KeepDeliveries: 7 * 24 * time.Hour,
	}
}

// Validate reports every option that makes no sense, by its key.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, key, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("notifications.%s must be %s", key, must))
		}
	}
	check(c.Every >= 0, "every", "0s (no limit) or more")
	check(c.Burst >= 1, "burst", "at least 1")
	check(c.ExpireAfter >= time.Second, "expire_after", "a second or more")
	check(c.MaxAttempts >= 1, "max_attempts", "at least 1")
	check(c.RetryMin > 0 && c.RetryMax >= c.RetryMin, "retry_min", "positive and at most retry_max")
	check(c.KeepDeliveries >= time.Minute, "keep_deliveries", "a minute or more")
	if _, err := parseQuiet(c.QuietHours); err != nil {
		errs = append(errs, fmt.Errorf("notifications.quiet_hours %w", err))
	}
	if u, err := url.Parse(c.SiteURL); c.SiteURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		errs = append(errs, errors.New("notifications.site_url must be an http or https URL"))
	}
	return errors.Join(errs...)
}

// quiet is the hours of a day when nothing is sent, in minutes since midnight;
// from may be after to. The zero value is never.
type quiet struct{ from, to int }

var quietText = regexp.MustCompile(`^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$`)

func parseQuiet(text string) (q quiet, err error) {
	if text == "" {
		return q, nil
	}
	if !quietText.MatchString(text) {
		return q, fmt.Errorf("must be two times of the day such as 22:00-07:00, not %q", text)
	}
	var h1, m1, h2, m2 int
	if _, err := fmt.Sscanf(text, "%d:%d-%d:%d", &h1, &m1, &h2, &m2); err != nil {
		return q, err
	}
	return quiet{h1*60 + m1, h2*60 + m2}, nil
}

// until returns when the quiet hours end that t is in, or the zero time.
func (q quiet) until(t time.Time) time.Time {
	if q.from == q.to {
		return time.Time{}
	}
	minute := t.Hour()*60 + t.Minute()
	end := time.Date(t.Year(), t.Month(), t.Day(), q.to/60, q.to%60, 0, 0, t.Location())
	switch {
	case q.from < q.to && minute >= q.from && minute < q.to, q.from > q.to && minute < q.to:
		return end
	case q.from > q.to && minute >= q.from:
		return time.Date(t.Year(), t.Month(), t.Day()+1, q.to/60, q.to%60, 0, 0, t.Location())
	}
	return time.Time{}
}

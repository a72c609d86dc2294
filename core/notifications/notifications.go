// Package notifications posts messages to chat about events that fit an action.
//
// It follows the journal behind the worker. For each event that fits an action
// that posts, it renders a message with the current person and writes it into a
// durable queue, in the transaction of the cursor: a crash neither loses a
// message nor writes one twice. Each destination is served on its own, in order,
// with retries until the message expires (later messages overtake one that waits
// for a retry); a slow or failing destination does not delay the others.
//
// The rate per action and destination is limited, because people cannot read a
// thousand messages a minute. Messages above the rate are suppressed; their
// number is sent with the next message. In quiet hours all messages are
// suppressed, and a summary is sent at their end.
//
// Several nodes may share the queue on Postgres. A row for each destination names the
// node that sends there, until when, and what the rate of its notifier permits; the node that
// holds it sends one message after the other, in the order of the queue. Times are those
// of the database. When the node dies, another one goes on after the lease.
package notifications

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"
)

// Config are the settings of notifications.
type Config struct {
	// Destinations are the notifiers of actions without destinations; empty is
	// every notifier.
	Destinations []string `koanf:"destinations"`
	// Every and Burst are the rate of one action to one destination: one
	// message per Every, and Burst after a pause.
	Every time.Duration `koanf:"every" live:"true"`
	Burst int           `koanf:"burst" live:"true"`
	// ExpireAfter is the time after which an undelivered message is given up.
	ExpireAfter time.Duration `koanf:"expire_after" live:"true"`
	// MaxAttempts is the maximum number of attempts per message.
	MaxAttempts int `koanf:"max_attempts" live:"true"`
	// RetryMin and RetryMax bound the growing pause between attempts.
	RetryMin time.Duration `koanf:"retry_min"`
	RetryMax time.Duration `koanf:"retry_max"`
	// QuietHours is when nothing is sent, "22:00-07:00" in the time zone of the
	// project; "" disables it.
	QuietHours string `koanf:"quiet_hours"`
	// SiteURL is the base URL of links in messages; "" makes none.
	SiteURL string `koanf:"site_url"`
	// DisplayNames are the person properties that can be the display name, best
	// first.
	DisplayNames []string `koanf:"display_names"`
	// KeepDeliveries is how long settled deliveries are kept.
	KeepDeliveries time.Duration `koanf:"keep_deliveries" live:"true"`
}

// DefaultConfig sends at most a message every ten seconds with bursts of five,
// and gives up after an hour.
func DefaultConfig() Config {
	return Config{
		Destinations: []string{}, Every: 10 * time.Second, Burst: 5, ExpireAfter: time.Hour, MaxAttempts: 20, RetryMin: time.Second, RetryMax: 5 * time.Minute,
		DisplayNames:   []string{"email", "Email", "name", "Name", "username", "Username", "UserName"},
		KeepDeliveries: 7 * 24 * time.Hour,
	}
}

// Validate reports all invalid settings, by their keys.
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

// quiet is the daily quiet time in minutes since midnight; from may be after
// to. The zero value is never.
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

// until returns the end of the quiet hours that contain t, or the zero time.
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

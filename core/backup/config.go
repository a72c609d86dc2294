package backup

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/guidonhq/guidon/core/backup/place"
	"github.com/guidonhq/guidon/core/backup/schedule"
)

// Config are the settings of backups.
type Config struct {
	// Every is the time between two backups by the server; 0: none.
	Every time.Duration `koanf:"every"`
	// At are times of the day for backups by the server, such as 02:30, in the local
	// time zone; instead of Every.
	At []string `koanf:"at"`
	// To is a directory, or s3://bucket/prefix/.
	To string `koanf:"to"`
	// Keep is the number of the newest backups that the server keeps in To.
	// KeepDaily, KeepWeekly and KeepMonthly keep, besides, the newest backup of so
	// many days, weeks and months. All four 0: all backups.
	Keep        int `koanf:"keep"`
	KeepDaily   int `koanf:"keep_daily"`
	KeepWeekly  int `koanf:"keep_weekly"`
	KeepMonthly int `koanf:"keep_monthly"`
	// Recipients are age public keys; without one, backups are not encrypted.
	Recipients []string `koanf:"recipients"`
	// Timeout ends a backup that takes longer; 0: none.
	Timeout time.Duration `koanf:"timeout"`
	// RateBytes is the most that a backup reads in a second; 0: no limit.
	RateBytes int64 `koanf:"rate_bytes"`
	// S3 names the store of s3:// targets.
	S3 place.S3 `koanf:"s3"`
}

// DefaultConfig makes no backups by itself.
func DefaultConfig() Config { return Config{Keep: 7, Timeout: 12 * time.Hour, RateBytes: 32 << 20} }

// minEvery is the least interval.
const minEvery = time.Minute

// Validate reports every invalid setting.
func (c Config) Validate() error {
	var errs []error
	if c.Every != 0 && c.Every < minEvery {
		errs = append(errs, fmt.Errorf("every must be 0 (no backups) or at least %s", minEvery))
	}
	if c.Every != 0 && len(c.At) > 0 {
		errs = append(errs, errors.New("every and at exclude each other: set one of them"))
	}
	if _, err := c.times(); err != nil {
		errs = append(errs, fmt.Errorf("at: %w", err))
	}
	if c.scheduled() && c.To == "" {
		errs = append(errs, errors.New("to is empty: name a directory or s3://bucket/prefix/ for the backups"))
	}
	if min(c.Keep, c.KeepDaily, c.KeepWeekly, c.KeepMonthly) < 0 {
		errs = append(errs, errors.New("keep, keep_daily, keep_weekly and keep_monthly must not be negative (all 0 keep all backups)"))
	}
	if c.Timeout < 0 {
		errs = append(errs, errors.New("timeout must not be negative (0 is no limit)"))
	}
	if c.RateBytes < 0 {
		errs = append(errs, errors.New("rate_bytes must not be negative (0 is no limit)"))
	}
	if c.To != "" {
		if err := place.Validate(c.To, c.S3); err != nil {
			errs = append(errs, fmt.Errorf("to: %w", err))
		}
	}
	if _, err := ParseRecipients(c.Recipients); err != nil {
		errs = append(errs, fmt.Errorf("recipients: %w", err))
	}
	return errors.Join(errs...)
}

// scheduled reports whether the server makes backups.
func (c Config) scheduled() bool { return c.Every > 0 || len(c.At) > 0 }

// times returns when the server makes backups.
func (c Config) times() (schedule.Times, error) {
	t := schedule.Times{Every: c.Every}
	for _, text := range c.At {
		at, err := schedule.ParseTimeOfDay(text)
		if err != nil {
			return t, err
		}
		t.At = append(t.At, at)
	}
	return t, nil
}

// ParseRecipients returns the recipients of age public keys, such as age1….
func ParseRecipients(keys []string) ([]age.Recipient, error) {
	var out []age.Recipient
	for _, key := range keys {
		found, err := age.ParseRecipients(strings.NewReader(key))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("%q is not an age public key: write one such as age1…, which age-keygen prints", key)
		}
		out = append(out, found...)
	}
	return out, nil
}

// ParseIdentities returns the identities of a file that age-keygen writes. The error
// does not quote the file.
func ParseIdentities(r io.Reader) ([]age.Identity, error) {
	found, err := age.ParseIdentities(r)
	if err != nil {
		return nil, errors.New("the file holds no age identity: it must be one that age-keygen writes")
	}
	return found, nil
}

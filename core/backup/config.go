package backup

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/guidonhq/guidon/core/backup/place"
)

// Config are the settings of backups.
type Config struct {
	// Every is the time between two backups by the server; 0: none.
	Every time.Duration `koanf:"every"`
	// To is a directory, or s3://bucket/prefix/.
	To string `koanf:"to"`
	// Keep is the number of backups that the server keeps in To; 0: all.
	Keep int `koanf:"keep"`
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
	if c.Every > 0 && c.To == "" {
		errs = append(errs, errors.New("to is empty: name a directory or s3://bucket/prefix/ for the backups"))
	}
	if c.Keep < 0 {
		errs = append(errs, errors.New("keep must not be negative (0 keeps all backups)"))
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

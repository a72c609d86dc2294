package units_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/sdk/units"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1m30s": 90 * time.Second, " 250ms ": 250 * time.Millisecond, "1.5h": 90 * time.Minute, "0": 0, "0s": 0, "-1s": -time.Second,
	} {
		if got, err := units.ParseDuration(written); err != nil || got != want {
			t.Errorf("%q: got %s and %v, want %s", written, got, err, want)
		}
	}
	for written, want := range map[string]string{
		"5": "without a unit: write one such as 5s", "7d": "the largest unit is the hour, write 168h", "soon": "write one such as 250ms", "": "is not a duration", "1 m": "is not a duration",
		"inf": "is not a duration: write", "infinity": "is not a duration: write", "nan": "is not a duration: write", "nand": "is not a duration: write",
		"99999999h": "is too long: the longest duration is 2562047h", "-300000000000s": "is too long",
	} {
		if got, err := units.ParseDuration(written); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %s and %v, want %q", written, got, err, want)
		}
	}
}

// Every text that a pattern accepts is read, and what operators write is accepted.
func TestPatterns(t *testing.T) {
	t.Parallel()
	size, duration := regexp.MustCompile(units.SizePattern), regexp.MustCompile(units.DurationPattern)
	for _, written := range []string{"0", "64MiB", "10 MB", "1.5GiB", "20mb", "512Ki", "7b", "1e3", "3 TB"} {
		if _, err := units.ParseSize(written); err != nil || !size.MatchString(written) {
			t.Errorf("%q: %v, matches %v", written, err, size.MatchString(written))
		}
	}
	for _, written := range []string{"64K", "5M", "lots", "", "MB", "1,5MB", "-1", "5 parsecs"} {
		if size.MatchString(written) {
			t.Errorf("%q matches", written)
		}
	}
	for _, written := range []string{"30s", "1m30s", "0s", "1.5h"} {
		if _, err := units.ParseDuration(written); err != nil || !duration.MatchString(written) {
			t.Errorf("%q: %v, matches %v", written, err, duration.MatchString(written))
		}
	}
}

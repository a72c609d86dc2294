// Package units reads durations and sizes as operators write them: 1m30s, 64MiB. The
// configuration of the server and that of every plugin use the same two parsers.
package units

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The accepted forms, for messages.
const (
	DurationForms = "a duration such as 250ms, 5s, 1m30s or 24h"
	SizeForms     = "a size such as 512KiB, 20MB or 2GiB, or a number of bytes"
)

// The patterns of texts in a JSON Schema. A text that does not match is wrong; one that
// matches may still be too large, or a size with a fraction of a byte.
const (
	DurationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	SizePattern     = `^[0-9]+(\.[0-9]+)?([eE]\+?[0-9]{1,2})? *(([kKmMgGtTpP][iI]?)?[bB]|[kKmMgGtTpP][iI])?$`
)

var durationText = regexp.MustCompile(DurationPattern)

// IsSize reports whether a setting counts bytes: its name ends in _bytes.
func IsSize(name string) bool { return strings.HasSuffix(name, "_bytes") }

// ParseDuration returns a duration such as 1m30s. 0 needs no unit. The error completes a
// sentence that begins with the text.
func ParseDuration(written string) (time.Duration, error) {
	written = strings.TrimSpace(written)
	d, err := time.ParseDuration(written)
	if err == nil {
		return d, nil
	}
	if f, ok := finite(written); ok {
		if f == 0 {
			return 0, nil
		}
		return 0, fmt.Errorf("is a duration without a unit: write one such as %ss", written)
	}
	if days, ok := finite(strings.TrimSuffix(written, "d")); ok {
		return 0, fmt.Errorf("is not a duration: the largest unit is the hour, write %gh", 24*days)
	}
	if durationText.MatchString(strings.TrimLeft(written, "+-")) {
		return 0, fmt.Errorf("is too long: the longest duration is %s", time.Duration(math.MaxInt64).Truncate(time.Hour))
	}
	return 0, errors.New("is not a duration: write one such as 250ms, 5s, 1m30s or 24h")
}

// finite reads a number; ok is false for other texts and for those that name infinity
// or no number.
func finite(written string) (f float64, ok bool) {
	f, err := strconv.ParseFloat(written, 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

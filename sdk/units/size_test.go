package units_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/sdk/units"
)

func TestParseSize(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]int64{
		"0": 0, "20971520": 20 << 20, "20MB": 20e6, "2GiB": 2 << 30, "512 KiB": 512 << 10, "1.5GiB": 3 << 29,
		"7b": 7, "1kb": 1000, "1Ki": 1024, "64mib": 64 << 20, " 3 TB ": 3e12, "0.001MB": 1000, "1e3": 1000, "-1": -1, "9223372036854775807": math.MaxInt64,
	} {
		if got, err := units.ParseSize(written); err != nil || got != want {
			t.Errorf("%q: got %d and %v, want %d", written, got, err, want)
		}
	}
	for written, want := range map[string]string{
		"": "is not a size", "MB": "is not a size", "lots": "is not a size", "1,5MB": "is not a size", "1 000": "is not a size", "0x10": "is not a size", "1e-3": "is not a size",
		"5M": "write MB for powers of 1000 or MiB for powers of 1024", "5 parsecs": "unknown unit parsecs",
		"1.5": "not a whole number of bytes", "0.0001KB": "not a whole number of bytes", "1e30": "is too large", "8PiB8": "is not a size", "9000000PB": "is too large", "9223372036854775808": "is too large",
	} {
		if got, err := units.ParseSize(written); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %d and %v, want %q", written, got, err, want)
		}
	}
}

// FuzzParseSize compares sizes without a unit with strconv, and checks that a
// unit multiplies.
func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"20MB", "2GiB", "512 KiB", "1.5GiB", "1e30", "-3kB", "00012", "5M"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := units.ParseSize(s)
		if n, perr := strconv.ParseInt(s, 10, 64); perr == nil && !strings.HasPrefix(s, "+") && len(s) < 30 && (err != nil || got != n) {
			t.Fatalf("%q: got %d and %v, want %d", s, got, err, n)
		}
		if err != nil && got != 0 {
			t.Fatalf("%q: got %d with an error", s, got)
		}
		if plain := strings.TrimSpace(s); err == nil && plain != "" && strings.Trim(plain, "-0123456789") == "" {
			kibi, err := units.ParseSize(plain + "KiB")
			if big := got > math.MaxInt64/1024 || got < math.MinInt64/1024; big != (err != nil) || !big && kibi != got*1024 {
				t.Fatalf("%q: %d bytes, but %d with KiB (%v)", s, got, kibi, err)
			}
		}
	})
}

package text_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/text"
)

func TestCutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s                                          string
		n                                          int
		truncate, ellipsis, chars, ellipsisOfChars string
	}{
		{"", 0, "", "", "", ""},
		{"abc", 3, "abc", "abc", "abc", "abc"},
		{"abcd", 3, "abc", "abc…", "abc", "ab…"},
		{"abcd", 0, "", "…", "", "…"},
		{"äöü", 3, "ä", "ä…", "äöü", "äöü"},
		{"äöüß", 3, "ä", "ä…", "äöü", "äö…"},
		{"€€", 2, "", "…", "€€", "€€"},
		{"a😀b", 4, "a", "a…", "a😀b", "a😀b"},
		{"a😀bc", 2, "a", "a…", "a😀", "a…"},
	} {
		if got := text.Truncate(c.s, c.n); got != c.truncate {
			t.Errorf("Truncate(%q, %d) = %q, want %q", c.s, c.n, got, c.truncate)
		}
		if got := text.Ellipsis(c.s, c.n); got != c.ellipsis {
			t.Errorf("Ellipsis(%q, %d) = %q, want %q", c.s, c.n, got, c.ellipsis)
		}
		if got := text.TruncateChars(c.s, c.n); got != c.chars {
			t.Errorf("TruncateChars(%q, %d) = %q, want %q", c.s, c.n, got, c.chars)
		}
		if got := text.EllipsisChars(c.s, c.n); got != c.ellipsisOfChars {
			t.Errorf("EllipsisChars(%q, %d) = %q, want %q", c.s, c.n, got, c.ellipsisOfChars)
		}
	}
}

func TestInvalidUTF8LosesAtMostOneCharacter(t *testing.T) {
	t.Parallel()
	if got := text.Truncate(strings.Repeat("\x80", 100), 50); len(got) < 46 {
		t.Errorf("Truncate left %d of 50 bytes", len(got))
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("a😀b", 2)
	f.Add("\xe2\x82", 1)
	f.Fuzz(func(t *testing.T, s string, n int) {
		got := text.Truncate(s, n)
		if len(got) > max(n, 0) || !strings.HasPrefix(s, got) {
			t.Errorf("Truncate(%q, %d) = %q", s, n, got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("Truncate(%q, %d) = %q splits a character", s, n, got)
		}
	})
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"timeout", "retry_min", "retry_max", "url"}
	for _, c := range []struct {
		name   string
		atMost int
		want   string
	}{
		{"timout", 3, "timeout"},
		{"retry_mix", 3, "retry_max"}, // both are one edit away
		{"endpoint", 3, ""},
		{"endpoint", math.MaxInt, "timeout"},
		{"tiemout", 1, "timeout"}, // two characters are swapped
		{"rul", 1, "url"},
		{"ulr", 1, "url"},
		{"u", 1, ""},
		{"u", 2, "url"},
	} {
		if got := text.Nearest(c.name, slices.Values(known), c.atMost); got != c.want {
			t.Errorf("Nearest(%q, atMost %d) = %q, want %q", c.name, c.atMost, got, c.want)
		}
	}
	if got := text.Nearest("a", slices.Values([]string(nil)), math.MaxInt); got != "" {
		t.Errorf("Nearest of no names = %q", got)
	}
}

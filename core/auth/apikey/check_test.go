package apikey_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/guidonhq/guidon/core/auth/apikey"
)

func TestCheckKey(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		key, trimmed string
		shape        apikey.Shape
	}{
		"a key":                                {"phc_a", "phc_a", ""},
		"a key without prefix is valid":        {"secret", "secret", ""},
		"white space around it is a file's":    {" phc_a\r\n", "phc_a", ""},
		"nothing":                              {"", "", apikey.ShapeEmpty},
		"white space only":                     {" \n", "", apikey.ShapeEmpty},
		"64 are enough":                        {strings.Repeat("a", 64), strings.Repeat("a", 64), ""},
		"65 are too many":                      {strings.Repeat("a", 65), strings.Repeat("a", 65), apikey.ShapeTooLong},
		"an accent":                            {"phc_é", "phc_é", apikey.ShapeNotASCII},
		"bytes that are no text":               {"phc_\xff", "phc_\xff", apikey.ShapeNotASCII},
		"a personal key":                       {"phx_a", "phx_a", apikey.ShapePersonal},
		"a zero byte":                          {"phc_\x00a", "phc_\x00a", apikey.ShapeNullByte},
		"a long accent is too long first":      {strings.Repeat("é", 40), strings.Repeat("é", 40), apikey.ShapeTooLong},
		"a personal key with a zero byte":      {"phx_\x00", "phx_\x00", apikey.ShapePersonal},
		"the prefix of a personal key, within": {"a_phx_", "a_phx_", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if trimmed, shape := apikey.Check(c.key); trimmed != c.trimmed || shape != c.shape {
				t.Fatalf("got %q, %q", trimmed, shape)
			}
		})
	}
}

func FuzzCheckKey(f *testing.F) {
	for _, seed := range []string{"", "phc_a", " phx_b\n", "\x00", "é", "\u2028a", strings.Repeat("k", 70)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		trimmed, shape := apikey.Check(key)
		if again, same := apikey.Check(trimmed); again != trimmed || same != shape {
			t.Fatalf("%q becomes %q %q, and that %q %q", key, trimmed, shape, again, same)
		}
		if shape != "" {
			return
		}
		if trimmed == "" || len(trimmed) > 64 || strings.HasPrefix(trimmed, "phx_") {
			t.Fatalf("%q passes", trimmed)
		}
		for i, r := range trimmed {
			edge := i == 0 || i == len(trimmed)-1
			if r == 0 || r > unicode.MaxASCII || (edge && unicode.IsSpace(r)) {
				t.Fatalf("%q passes with %q", trimmed, r)
			}
		}
	})
}

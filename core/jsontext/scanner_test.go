package jsontext_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/guidonhq/guidon/core/jsontext"
)

func TestCheckNamesTheProblem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                       "there is nothing in it (byte 0)",
		" \n":                    "there is nothing in it (byte 2)",
		`{"a":1} x`:              "there is more after the end (byte 8)",
		`{"a":}`:                 "a value was expected (byte 5)",
		`{"a"`:                   "a colon was expected (byte 4)",
		`{"a":`:                  "it ends in the middle (byte 5)",
		`{a:1}`:                  "a name in quotes was expected (byte 1)",
		`{"a":1 "b":2}`:          "a comma or the end of the object was expected (byte 7)",
		`[1 2]`:                  "a comma or the end of the list was expected (byte 3)",
		`[1,]`:                   "a value was expected (byte 3)",
		`01`:                     "there is more after the end (byte 1)",
		`-`:                      "a digit was expected (byte 1)",
		`1.`:                     "a digit was expected (byte 2)",
		`1e+`:                    "a digit was expected (byte 3)",
		`nul`:                    "a value was expected (byte 0)",
		`"abc`:                   "a text has no end (byte 4)",
		`"\`:                     "a text has no end (byte 1)",
		`"\x"`:                   "an escape is unknown (byte 1)",
		`"\u12"`:                 "an escape is broken (byte 1)",
		`[`:                      "it ends in the middle (byte 1)",
		`[1,`:                    "it ends in the middle (byte 3)",
		`[[[[1]]]]`:              "it is nested too deeply (byte 3)",
		`NaN`:                    "a value was expected (byte 0)",
		`-Infinity`:              "a value was expected (byte 1)",
		"\"a\x01\"":              "a control character in a text was expected to be escaped (byte 2)",
		"\"a\xff\"":              "it is not UTF-8 (byte 2)",
		"\"ä\xff\xffä\"":         "it is not UTF-8 (byte 3)",
		`{"a":[1,{"b":2}]}`:      "",
		"[1,\n2]":                "",
		`"\ud83d \u0000"`:        "",
		`["ä", "😀\ud83d\ude00"]`: "",
	} {
		s := jsontext.Scanner{Strict: true, MaxDepth: 3}
		s.Reset([]byte(text))
		if ok := s.Check(); ok != (want == "") || s.Problem() != want {
			t.Errorf("%q: %v, %q; want %q", text, ok, s.Problem(), want)
		}
	}
}

func TestDirtyTextIsMadeClean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, clean string }{
		{`{"a": [1, -2.5e3, true]}`, ``},
		{"[1,\n2]", `[1,2]`},
		{`[NaN, Infinity,-Infinity]`, `[null,null,null]`},
		{"\"a\x01\x00\\u0000b\"", "\"a\\u0001\ufffd\ufffdb\""},
		{"\"\xed\xa0\xbd\xed\xb2\xbb\"", `"💻"`},
		{"\"\xed\xa0\xbdx\"", `"\\ud83dx"`},
		{`"\ud83d\ud83d\udcbb \udcbb"`, `"\\ud83d\ud83d\udcbb \\udcbb"`},
		{"\"\xf0\x9f\x92\"", "\"\ufffd\ufffd\ufffd\""},
		{`"NaN \\u0000"`, ``},
	} {
		var s jsontext.Scanner
		s.Reset([]byte(c.text))
		if !s.Check() {
			t.Errorf("%q: %s", c.text, s.Problem())
			continue
		}
		if s.Dirty != (c.clean != "") {
			t.Errorf("%q: dirty is %v", c.text, s.Dirty)
		}
		if got := string(jsontext.AppendClean(nil, []byte(c.text))); c.clean != "" && got != c.clean {
			t.Errorf("%q becomes %s, want %s", c.text, got, c.clean)
		}
	}
	var s jsontext.Scanner
	s.KeepLines = true
	s.Reset([]byte("[1,\r\n2]"))
	if !s.Check() || s.Dirty {
		t.Errorf("line breaks are not kept: dirty %v, %q", s.Dirty, s.Problem())
	}
}

func TestSanitizeKeepsSpaceAndEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	if got := string(jsontext.Sanitize(nil, []byte("{ \"a\": NaN }\n"), 100)); got != "{ \"a\": null }\n" {
		t.Errorf("Sanitize = %q", got)
	}
	long := []byte(`"` + strings.Repeat("\x01", 1000) + `"`)
	if got := jsontext.Sanitize(nil, long, 100); len(got) < 101 || len(got) > 120 {
		t.Errorf("Sanitize wrote %d bytes, want little more than 100", len(got))
	}
}

func TestMembersAndElements(t *testing.T) {
	t.Parallel()
	var s jsontext.Scanner
	s.Reset([]byte(`{"a": 1, "\u0062": [2, {"c": 3}], "d": "e"}`))
	s.Peek()
	s.Open()
	var got []string
	for name, ok := s.Member(true); ok; name, ok = s.Member(false) {
		got = append(got, string(name.Resolve(nil))+"="+string(s.Value()))
	}
	if want := `a=1|b=[2, {"c": 3}]|d="e"`; strings.Join(got, "|") != want || !s.End() {
		t.Errorf("members %s, end %v; want %s", strings.Join(got, "|"), s.End(), want)
	}
	s.Reset([]byte(`[[], 1, "x"]`))
	s.Peek()
	s.Open()
	got = nil
	for first := true; s.Element(first); first = false {
		got = append(got, string(s.Value()))
	}
	if want := `[]|1|"x"`; strings.Join(got, "|") != want || !s.End() {
		t.Errorf("elements %s, end %v; want %s", strings.Join(got, "|"), s.End(), want)
	}
}

func TestNestingIsBounded(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	var s jsontext.Scanner
	if s.Reset(nested(jsontext.MaxNesting)); !s.Check() || s.Deepest != jsontext.MaxNesting {
		t.Errorf("the deepest text: %s, depth %d", s.Problem(), s.Deepest)
	}
	if s.Reset(nested(jsontext.MaxNesting + 1)); s.Check() {
		t.Error("deeper text is accepted")
	}
}

func TestHasLoneSurrogate(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`"a"`: false, `"\ud83d\ude00"`: false, `"\ud83d"`: true, `"\ude00x"`: true, `"\\ud83d"`: false, `"\u0000\n"`: false,
		`"\ud83d\ud83d\ude00"`: true,
	} {
		if got := jsontext.HasLoneSurrogate([]byte(raw)); got != want {
			t.Errorf("HasLoneSurrogate(%s) = %v", raw, got)
		}
	}
}

func seeds(f *testing.F) {
	f.Helper()
	for _, s := range []string{
		`{"a":[1,-2.5e+3,null,true,{"b":"\u00e9\n\"\\"}],"c":"😀"}`, `[NaN,-Infinity]`, "\"\xed\xa0\xbd\xed\xb2\xbb\xff\"", `"\ud83d\u0000"`,
		"{\n\"a\"\t: 1 }", `[`, `{"a"`, `01`, `"\u12"`, "\"\x01\"", strings.Repeat("[", 70), `{"a":1}}`, `1 2`, `-`, `1e`, `tru`,
	} {
		f.Add([]byte(s))
	}
}

// FuzzScanner compares the scanner with encoding/json, and what AppendClean
// makes of accepted text.
func FuzzScanner(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		s := jsontext.Scanner{Strict: true, MaxDepth: 100}
		s.Reset(text)
		strict := s.Check()
		if want := json.Valid(text) && utf8.Valid(text); strict != want && s.Problem() != "it is nested too deeply" && depth(text) <= 100 {
			t.Fatalf("%q: strict scanner says %v (%s), encoding/json %v", text, strict, s.Problem(), want)
		}
		s = jsontext.Scanner{}
		s.Reset(text)
		accepted := s.Check()
		if strict && !accepted {
			t.Fatalf("%q: the lenient scanner refuses what the strict one accepts", text)
		}
		if !accepted {
			return
		}
		clean := jsontext.AppendClean(nil, text)
		kept := jsontext.Sanitize(nil, text, 1<<30)
		if !json.Valid(clean) || !utf8.Valid(clean) || !json.Valid(kept) || !jsontext.Equal(clean, kept) {
			t.Fatalf("%q becomes %q and %q", text, clean, kept)
		}
		if !s.Dirty && !jsontext.Equal(clean, text) {
			t.Fatalf("%q is not dirty and becomes %q", text, clean)
		}
		if s.Reset(clean); !s.Check() || s.Dirty {
			t.Fatalf("%q becomes %q, which is dirty %v (%s)", text, clean, s.Dirty, s.Problem())
		}
	})
}

// depth is an upper bound of the nesting of a text.
func depth(text []byte) int {
	return strings.Count(string(text), "[") + strings.Count(string(text), "{")
}

func FuzzString(f *testing.F) {
	f.Add(`a\n\u00e9😀`)
	f.Add("\\ud83d\\ude00\xed\xa0\xbd")
	f.Fuzz(func(t *testing.T, inner string) {
		quoted := `"` + inner + `"`
		var s jsontext.Scanner
		s.Reset([]byte(quoted))
		if !s.Check() || s.Pos != len(quoted) {
			return
		}
		got := jsontext.String{Raw: []byte(inner)}.Append(nil)
		if !utf8.Valid(got) {
			t.Fatalf("%q reads as %q, which is not UTF-8", inner, got)
		}
		value, ok := jsontext.Unquote(quoted)
		if s.Dirty {
			return
		}
		if !ok || value != string(got) {
			t.Fatalf("%q: Unquote %q, %v; Append %q", inner, value, ok, got)
		}
	})
}

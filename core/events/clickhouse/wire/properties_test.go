package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

// Packed properties are shorter, and become the same text again.
func TestPackedProperties(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url, text string
		packed    int // marks
	}{
		{"https://example.com/a/b?x=1#y", `{"$current_url":"https://example.com/a/b?x=1#y","$pathname":"/a/b","n":1}`, 2},
		{"https://example.com/a", `{"$pathname":"/a","$set":{"$pathname":"/a"},"$current_url":"https://example.com/a"}`, 2},
		{"https://example.com?q", `{"$current_url":"https://example.com?q","$pathname":"/"}`, 1},
		{"HTTP://example.com/a", `{"$current_url":"HTTP://example.com/a","$pathname":"/a"}`, 1},
		{"/a", `{"$current_url":"/a","$pathname":""}`, 1},
		{"https://example.com/a/b", `{"$current_url":"https:\/\/example.com\/a\/b","$pathname":"/a/b"}`, 0},
		{"https://example.com/a", `{"$current_url": "https://example.com/a"}`, 0},
		{"https://example.com/a", "{\"$current_url\":\"https://example.com/a\",\"x\":\"\x02\"}", 0},
		{"https://example.com/a", "{\"$current_url\":\"https://example.com/a\",\"x\":\"\x01\"}", 0},
		{"", `{"$current_url":""}`, 0},
		{"https://example.com/" + strings.Repeat("a", 900), `{"$current_url":"https://example.com/` + strings.Repeat("a", 2000) + `"}`, 0},
	} {
		packed := PackProperties(c.text, c.url)
		if n := strings.Count(packed, urlMark) + strings.Count(packed, pathMark); c.packed > 0 && n != 1+c.packed || c.packed == 0 && packed != c.text {
			t.Errorf("%s: %q", c.text, packed)
		}
		if got := UnpackProperties(packed, c.url); got != c.text {
			t.Errorf("%q becomes\n%s\nwant\n%s", packed, got, c.text)
		}
	}
}

func FuzzPackProperties(f *testing.F) {
	f.Add("https://example.com/a?b", "/a", "x")
	f.Add("\x01\x02", "\x01", "\x02")
	f.Fuzz(func(t *testing.T, url, path, other string) {
		text, err := json.Marshal(map[string]string{"$current_url": url, "$pathname": path, "z": other})
		if err != nil {
			t.Skip()
		}
		for _, properties := range []string{string(text), `{"$current_url":"` + url + `","$pathname":"` + path + `"}` + other} {
			if got := UnpackProperties(PackProperties(properties, url), url); got != properties {
				t.Errorf("%q of %q becomes %q", properties, url, got)
			}
		}
	})
}

package yamlfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/config/yamlfile"
)

// An error names the line of the mistake, not the one where the list or map around
// it begins.
func TestParseNamesTheWrongLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		line       int
	}{
		{"a wrong indentation", "http:\n  address: x\nplugins:\n  instances:\n    - name: a\n      kind: sink\n     use: file\n      config: {}\n", 7},
		{"a brace that is not closed", "http:\n  address: x\nplugins:\n  instances:\n    - {name: a,\n       kind: sink\nlog:\n  level: info\n", 5},
		{"a tab", "http:\n  address: x\n\tlog: y\n", 3},
		{"a quote that is not closed", "data_dir: x\nhttp:\n  address: \"x\nlog:\n  level: info\n", 3},
		{"a key twice", "http:\n  address: x\n  address: y\n", 3},
		{"a value within a value", "# comment\nhttp:\n  address: x: y\nlog: a\n", 3},
		{"after a list of several lines", "a: [\n 1,\n 2\n]\nhttp:\n  address: x\n   b: c\n", 7},
		{"an unknown alias", "http:\n  address: x\nlog: *nothing\n", 3},
		{"behind comments", "a: 1\n\n# why\n  b: 2\n", 4},
		{"a file that ends early", "a: 1\nb: [1,\n", 2},
		{"a list", "- a\n- b\n", 0},
		{"a text", "hello-secret", 0},
	} {
		_, err := yamlfile.Parse([]byte(c.text))
		var syntax *yamlfile.SyntaxError
		if !errors.As(err, &syntax) || syntax.Line != c.line || strings.Contains(err.Error(), "yaml:") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %+v (%v), want line %d", c.name, syntax, err, c.line)
		}
	}
}

// The line is exact in long sections, too, behind values of several lines.
func TestParseNamesTheWrongLineOfALongSection(t *testing.T) {
	t.Parallel()
	for _, item := range []int{0, 1, 50, 149, 299} {
		var b strings.Builder
		b.WriteString("plugins:\n  instances:\n")
		want := 0
		for i := range 300 {
			fmt.Fprintf(&b, "    - name: n%d\n      kind: sink\n      tags: [\n        a,\n        b,\n      ]\n", i)
			if i == item {
				want = 1 + strings.Count(b.String(), "\n")
				b.WriteString("     use: file\n")
			}
		}
		_, err := yamlfile.Parse([]byte(b.String()))
		var syntax *yamlfile.SyntaxError
		if !errors.As(err, &syntax) || syntax.Line != want {
			t.Errorf("mistake in item %d: %v, want line %d", item, err, want)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	f, err := yamlfile.Parse([]byte("http:\n  address: x\nplugins:\n  instances:\n    - name: a\n      delivery:\n        sample: 3\n    - {name: b}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{
		"http": 1, "http.address": 2, "plugins.instances[0]": 5, "plugins.instances[0].delivery.sample": 7, "plugins.instances[1].name": 8,
		"http.other": 0, "plugins.instances[2]": 0, "http.address.x": 0, "": 0,
	} {
		if got := f.Line(key); got != want {
			t.Errorf("%q: got %d, want %d", key, got, want)
		}
	}
	if got := fmt.Sprint(f.Values()["http"]); got != "map[address:x]" {
		t.Errorf("got %s", got)
	}
}

func TestSectionIgnoresTheRest(t *testing.T) {
	t.Parallel()
	broken := []byte("plugins:\n  instances:\n    - {name: a,\nhttp:\n  admin_address: 127.0.0.1:9\n# end\nlog: [\n")
	f, ok, err := yamlfile.Section(broken, "http")
	if err != nil || !ok || f.Line("http.admin_address") != 5 {
		t.Errorf("got %v, %v, %v", f, ok, err)
	}
	if _, ok, err := yamlfile.Section(broken, "auth"); ok || err != nil {
		t.Errorf("a section that is not there: %v, %v", ok, err)
	}
	if _, ok, err := yamlfile.Section(broken, "log"); !ok || err == nil || !strings.Contains(err.Error(), "line 7") {
		t.Errorf("a broken section: %v, %v", ok, err)
	}
}

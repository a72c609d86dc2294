package output_test

import (
	"strings"
	"testing"

	"github.com/guidonhq/guidon/cmd/guidon/output"
)

// TestNumbersKeepTheirDigits prints numbers that a float64 cannot hold.
func TestNumbersKeepTheirDigits(t *testing.T) {
	var v any
	if err := output.Decode([]byte(`{"a":[9007199254740993,0.10,1e30],"b":"7"}`), &v); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{
		output.JSON: "{\n  \"a\": [\n    9007199254740993,\n    0.10,\n    1e30\n  ],\n  \"b\": \"7\"\n}\n",
		output.YAML: "a:\n  - 9007199254740993\n  - 0.10\n  - 1e30\nb: \"7\"\n",
	} {
		var b strings.Builder
		if err := output.Value(&b, format, v); err != nil || b.String() != want {
			t.Errorf("%s: %q, want %q (%v)", format, b.String(), want, err)
		}
	}
}

func TestFormats(t *testing.T) {
	var b strings.Builder
	value := map[string]any{"b": "<x>", "a": []any{1.0, nil}}
	if err := output.Value(&b, output.JSON, value); err != nil || b.String() != "{\n  \"a\": [\n    1,\n    null\n  ],\n  \"b\": \"<x>\"\n}\n" {
		t.Errorf("JSON: %q %v", b.String(), err)
	}
	b.Reset()
	if err := output.Value(&b, output.YAML, value); err != nil || b.String() != "a:\n  - 1\n  - null\nb: <x>\n" {
		t.Errorf("YAML: %q %v", b.String(), err)
	}
	b.Reset()
	if err := output.Rows(&b, []string{"KEY", "NAME"}, [][]any{{"k", "a\x1b[31m\nb\u009b"}, {"longer", 7}}); err != nil || b.String() != "KEY     NAME\nk       a\\x1b[31m\\x0ab\\x9b\nlonger  7\n" {
		t.Errorf("table: %q %v", b.String(), err)
	}
}

package output_test

import (
	"strings"
	"testing"

	"github.com/guidonhq/guidon/cmd/guidon/output"
)

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

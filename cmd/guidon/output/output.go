// Package output prints the answers of a server for people and for programs.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"
)

// The formats of an output.
const (
	Table = "table"
	JSON  = "json"
	YAML  = "yaml"
)

// Decode decodes JSON into out. Numbers of any are json.Number, which keeps every digit.
func Decode(text []byte, out any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(out)
}

// Literal returns v for an encoder of YAML: each json.Number becomes a number with the
// same digits.
func Literal(v any) any {
	switch v := v.(type) {
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(v.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: v.String()}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = Literal(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = Literal(value)
		}
		return out
	}
	return v
}

// Value prints the decoded JSON value v as JSON or YAML. Keys are sorted.
func Value(w io.Writer, format string, v any) error {
	if format == YAML {
		enc := yaml.NewEncoder(w)
		enc.SetIndent(2)
		if err := enc.Encode(Literal(v)); err != nil {
			return err
		}
		return enc.Close()
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Rows prints a table with the header and one line for each row. Control characters
// in a cell are escaped, so that no value moves the cursor of a terminal.
func Rows(w io.Writer, header []string, rows [][]any) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(header, "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Clean(fmt.Sprint(cell))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// Clean returns text with its control characters escaped.
func Clean(text string) string {
	if !strings.ContainsFunc(text, isControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isControl(r) {
			fmt.Fprintf(&b, "\\x%02x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// OneLine returns a text as a table cell of at most maxRunes characters, with
// control characters replaced by spaces.
func OneLine(s string, maxRunes int) string {
	s = strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > maxRunes {
		return string(runes[:maxRunes-1]) + "…"
	}
	return s
}

// Size returns a number of bytes with its unit.
func Size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%d kB", (n+999)/1000)
}

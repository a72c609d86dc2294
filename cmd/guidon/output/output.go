// Package output prints the answers of a server for people and for programs.
package output

import (
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

// Value prints the decoded JSON value v as JSON or YAML. Keys are sorted.
func Value(w io.Writer, format string, v any) error {
	if format == YAML {
		enc := yaml.NewEncoder(w)
		enc.SetIndent(2)
		if err := enc.Encode(v); err != nil {
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

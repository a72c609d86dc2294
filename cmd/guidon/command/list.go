package command

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/guidonhq/guidon/cmd/guidon/output"
)

// List prints the objects of a list: their fields, or one row for each.
func List[T any](f Remote, e *Env, texts []json.RawMessage, header string, row func(T) []any) error {
	all := make([]any, len(texts))
	rows := make([][]any, len(texts))
	for i, text := range texts {
		var one T
		if err := json.Unmarshal(text, &one); err != nil {
			return err
		}
		if err := output.Decode(text, &all[i]); err != nil {
			return err
		}
		rows[i] = row(one)
	}
	return f.Print(e, all, header, rows)
}

// Plural returns a count with its noun.
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// OrDash returns "-" for "".
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// FormatTime formats a time for a table cell; "-" stands for the zero time.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.DateTime)
}

// YesNo returns yes or no.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

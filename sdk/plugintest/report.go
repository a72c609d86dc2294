package plugintest

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

// Table writes the report for people: a line for each case, and a summary.
func (r *Report) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.Cases {
		if _, err := fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", marks[c.Outcome], c.Group, c.Name, c.Reason); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Summary())
	return err
}

var marks = map[Outcome]string{Passed: "ok", Failed: "FAIL", Skipped: "skip"}

// Line returns one case as a line for people, in columns that fit every case.
func (c Case) Line() string {
	return strings.TrimRight(fmt.Sprintf("%-4s  %-9s  %-47s  %5.1fs  %s", marks[c.Outcome], c.Group, c.Name, c.Seconds, c.Reason), " ")
}

// Summary returns the numbers of the report as a sentence.
func (r *Report) Summary() string {
	return fmt.Sprintf("%s %s (%s, %s) against %s: %d passed, %d failed, %d skipped",
		observe.Clip(r.Plugin), observe.Clip(r.Version), r.Kind, observe.Clip(r.SDK), r.Kit, r.Passed, r.Failed, r.Skipped)
}

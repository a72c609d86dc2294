package plugintest

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Table writes the report for people: a line for each case, and a summary.
func (r *Report) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range r.Cases {
		mark := map[Outcome]string{Passed: "ok", Failed: "FAIL", Skipped: "skip"}[c.Outcome]
		if _, err := fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", mark, c.Group, c.Name, c.Reason); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s %s (%s, %s) against %s: %d passed, %d failed, %d skipped\n",
		r.Plugin, r.Version, r.Kind, r.SDK, r.Kit, r.Passed, r.Failed, r.Skipped)
	return err
}

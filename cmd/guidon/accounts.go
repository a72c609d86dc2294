package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/guidonhq/guidon/app"
)

// withAdmin opens the accounts, calls do and closes them.
func (e *env) withAdmin(do func(ctx context.Context, a *app.Admin) error) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx := context.Background()
	a, err := app.OpenAdmin(ctx, cfg)
	if err != nil {
		return err
	}
	err = do(ctx, a)
	if closed := a.Close(); err == nil {
		err = closed
	}
	return err
}

// table prints rows in aligned columns. The words of header name the columns.
func (e *env) table(header string, rows [][]any) error {
	w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(header, " ", "\t"))
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cell)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// formatTime formats a time for a table cell; "-" stands for the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.DateTime)
}

// keyState returns the last column of a key.
func keyState(revoked time.Time, expires ...time.Time) string {
	switch {
	case !revoked.IsZero():
		return "revoked " + formatTime(revoked)
	case len(expires) > 0 && !expires[0].IsZero() && !time.Now().Before(expires[0]):
		return "expired"
	}
	return "active"
}

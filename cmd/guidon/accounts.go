package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/guidonhq/guidon/app"
)

// within opens the accounts for one verb.
func (e *env) within(do func(ctx context.Context, a *app.Admin) error) error {
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

// table writes rows in columns.
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

func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.DateTime)
}

func alive(revoked time.Time) string {
	if revoked.IsZero() {
		return "active"
	}
	return "revoked " + day(revoked)
}

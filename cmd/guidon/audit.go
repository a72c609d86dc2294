package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/guidonhq/guidon/app"
)

type auditCmd struct {
	Verify auditVerifyCmd `cmd:"" help:"Find changed, removed and reordered entries of the activity log; also beside a running server."`
	Export auditExportCmd `cmd:"" help:"Write the entries as JSON lines with their hashes, the oldest first."`
	Head   auditHeadCmd   `cmd:"" help:"Print the number and the hash of the newest entry: an anchor to keep elsewhere."`
}

var errTampered = errors.New("the activity log was changed")

type auditVerifyCmd struct {
	File   string   `help:"Verify an export instead of the database; - is the standard input." placeholder:"FILE"`
	Anchor []string `help:"A former head, as guidon audit head printed it. Repeatable." placeholder:"NUMBER:HASH"`
	Output string   `short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run prints the problems that it finds, and fails if there are any.
func (c auditVerifyCmd) Run(e *env) error {
	var anchors []app.AuditHead
	for _, text := range c.Anchor {
		h, err := app.ParseAuditHead(text)
		if err != nil {
			return fmt.Errorf("--anchor: %w", err)
		}
		anchors = append(anchors, h)
	}
	report, err := c.verify(e, anchors)
	if err != nil {
		return err
	}
	if err := e.printAudit(report, c.Output == "json"); err != nil {
		return err
	}
	if n := len(report.Problems) + report.More; n > 0 {
		return fmt.Errorf("%w: %d problems, see \"The activity log\" in docs/operators.md", errTampered, n)
	}
	return nil
}

func (c auditVerifyCmd) verify(e *env, anchors []app.AuditHead) (*app.AuditReport, error) {
	switch c.File {
	case "":
		var report *app.AuditReport
		return report, e.withAudit(func(ctx context.Context, a *app.Audit) (err error) {
			report, err = a.Verify(ctx, anchors...)
			return err
		})
	case "-":
		return app.VerifyAuditExport(os.Stdin, anchors...)
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return app.VerifyAuditExport(file, anchors...)
}

// printAudit prints a report.
func (e *env) printAudit(r *app.AuditReport, asJSON bool) error {
	if asJSON {
		return e.printJSON(r)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(e.out, "%s: %s\n", p.Kind, p.Text)
	}
	if r.More > 0 {
		fmt.Fprintf(e.out, "and %d more problems\n", r.More)
	}
	fmt.Fprintf(e.out, "entries %d, redacted %d, not sealed yet %d\n", r.Entries, r.Redacted, r.Unsealed)
	if r.Cut > 0 {
		fmt.Fprintf(e.out, "retention removed the entries up to %d\n", r.Cut)
	}
	_, err := fmt.Fprintf(e.out, "head %s\n", r.Head)
	return err
}

type auditExportCmd struct {
	After int64  `help:"Only entries with a higher number, for example the head of the last export."`
	To    string `help:"File to write; default: the standard output." placeholder:"FILE"`
}

// Run writes the entries. A file that exists is not replaced.
func (c auditExportCmd) Run(e *env) (err error) {
	to := e.out
	if c.To != "" {
		file, failed := os.OpenFile(c.To, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, file.Sync(), file.Close()) }()
		to = file
	}
	return e.withAudit(func(ctx context.Context, a *app.Audit) error {
		_, err := a.Export(ctx, c.After, to)
		return err
	})
}

type auditHeadCmd struct{}

// Run prints the head.
func (auditHeadCmd) Run(e *env) error {
	return e.withAudit(func(ctx context.Context, a *app.Audit) error {
		head, err := a.Head(ctx)
		if err == nil {
			_, err = fmt.Fprintln(e.out, head)
		}
		return err
	})
}

// withAudit calls f with the activity log of the config.
func (e *env) withAudit(f func(ctx context.Context, a *app.Audit) error) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	a, err := app.OpenAudit(ctx, cfg)
	if err != nil {
		return err
	}
	return errors.Join(f(ctx, a), a.Close())
}

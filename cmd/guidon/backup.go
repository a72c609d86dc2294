package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
)

type backupCmd struct {
	Create  backupCreateCmd `cmd:"" default:"withargs" help:"Write a backup; also beside a running server. It is what guidon backup without a verb does."`
	List    backupListCmd   `cmd:"" help:"List the backups in a directory or a bucket, the newest first."`
	Check   backupCheckCmd  `cmd:"" help:"Read a whole backup, verify its checksums and print what is inside."`
	Restore restoreCmd      `cmd:"" help:"Verify a backup and restore it, as guidon restore. Stop the server first."`
}

type backupCreateCmd struct {
	To        string   `arg:"" optional:"" help:"File, directory or s3://bucket/prefix/ to write to; default: backup.to of the config. In a directory the name has the time." placeholder:"TARGET"`
	Recipient []string `help:"Encrypt for this age public key, besides backup.recipients of the config. Repeatable." placeholder:"age1…"`
	Rate      string   `help:"Most bytes to read in a second, such as 10MB; 0: no limit; default: backup.rate_bytes of the config." placeholder:"SIZE"`
	Output    string   `short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run writes a backup, also beside a running server.
func (c backupCreateCmd) Run(e *env, m *command.Env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	o := app.BackupOptions{To: c.To, Recipients: c.Recipient, RateBytes: -1, ConfigFile: e.path(), Version: version}
	if c.Rate != "" {
		if o.RateBytes, err = app.ParseSize(c.Rate); err != nil {
			return fmt.Errorf("--rate: %w", err)
		}
	}
	bar := m.StartProgress("writing the backup")
	o.Progress = bar.Report
	made, err := app.Backup(ctx, cfg, o)
	bar.Stop()
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return e.printJSON(summaryOf(made))
	}
	fmt.Fprintf(e.out, "backup %s: %s, %s before compression, in %s\n", made.Path, output.Size(made.Bytes), output.Size(made.Manifest.Bytes()), made.Took.Round(time.Millisecond))
	if j := made.Manifest.Journal; j != nil {
		fmt.Fprintf(e.out, "journal %s: records %d to %d\n", j.ID, j.First, j.Last)
	} else {
		fmt.Fprintln(e.out, "no journal found: events that the database has not processed are not in the backup")
	}
	if left := made.Manifest.LeftOut; len(left) > 0 {
		fmt.Fprintf(e.out, "not in the backup, because it is not encrypted: %s\n", strings.Join(left, ", "))
	}
	return nil
}

// backupSummary is a backup as JSON.
type backupSummary struct {
	Path         string              `json:"path"`
	Bytes        int64               `json:"bytes"`
	ContentBytes int64               `json:"content_bytes"`
	Seconds      float64             `json:"seconds"`
	Manifest     *app.BackupManifest `json:"manifest"`
}

func summaryOf(made *app.BackupResult) backupSummary {
	return backupSummary{made.Path, made.Bytes, made.Manifest.Bytes(), made.Took.Seconds(), made.Manifest}
}

type backupListCmd struct {
	In     string `arg:"" optional:"" help:"Directory or s3://bucket/prefix/; default: backup.to of the config." placeholder:"PLACE"`
	Output string `short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run lists backups.
func (c backupListCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	list, err := app.ListBackups(ctx, cfg, c.In)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return e.printJSON(list)
	}
	rows := make([][]any, len(list))
	for i, b := range list {
		rows[i] = []any{b.At.Format(time.RFC3339), output.Size(b.Bytes), b.Path}
	}
	return e.table("TIME SIZE BACKUP", rows)
}

type backupCheckCmd struct {
	From     string `arg:"" optional:"" help:"Backup to check: a file or s3://bucket/prefix/name; of a directory the newest backup; default: backup.to of the config." placeholder:"BACKUP"`
	Identity string `short:"i" help:"File with the age identity that decrypts the backup." placeholder:"FILE"`
	Output   string `short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run verifies a backup.
func (c backupCheckCmd) Run(e *env, m *command.Env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	bar := m.StartProgress("verifying the backup")
	content, err := app.CheckBackup(ctx, cfg, c.From, c.Identity, bar.Report)
	bar.Stop()
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return e.printJSON(struct {
			Path      string              `json:"path"`
			Bytes     int64               `json:"bytes"`
			Encrypted bool                `json:"encrypted"`
			Files     []app.BackupFile    `json:"files"`
			Manifest  *app.BackupManifest `json:"manifest"`
		}{content.Path, content.Bytes, content.Encrypted, content.Files, content.Manifest})
	}
	return e.printContent(content)
}

func (e *env) printContent(c *app.BackupContent) error {
	m, encrypted := c.Manifest, "not encrypted"
	if c.Encrypted {
		encrypted = "encrypted"
	}
	fmt.Fprintf(e.out, "verified %s: %s, %s before compression, %s\n", c.Path, output.Size(c.Bytes), output.Size(m.Bytes()), encrypted)
	fmt.Fprintf(e.out, "backup of %s by guidon %s: %s, schema %d\n", m.CreatedAt.Format(time.RFC3339), m.Guidon, m.Database, m.Schema)
	if j := m.Journal; j != nil {
		fmt.Fprintf(e.out, "journal %s: records %d to %d\n", j.ID, j.First, j.Last)
	} else {
		fmt.Fprintln(e.out, "no journal")
	}
	for _, cursor := range m.Cursors {
		fmt.Fprintf(e.out, "processed by %s: up to record %d of journal %s\n", cursor.Name, cursor.Seq, cursor.Journal)
	}
	if len(m.LeftOut) > 0 {
		fmt.Fprintf(e.out, "not in the backup, because it is not encrypted: %s\n", strings.Join(m.LeftOut, ", "))
	}
	rows := make([][]any, len(c.Files))
	for i, f := range c.Files {
		rows[i] = []any{f.Name, output.Size(f.Bytes)}
	}
	return e.table("FILE SIZE", rows)
}

type restoreCmd struct {
	From          string `arg:"" help:"Backup to restore: a file or s3://bucket/prefix/name." placeholder:"BACKUP"`
	Identity      string `short:"i" help:"File with the age identity that decrypts the backup." placeholder:"FILE"`
	Until         string `help:"Process the journal only up to this time, such as 2026-11-22T14:30:00Z." placeholder:"TIME"`
	Force         bool   `help:"Replace a database and a journal that are there. Replaced files are kept; the content of a Postgres database is not."`
	IgnoreJournal bool   `name:"ignore-journal" help:"Use the journal of the backup although the one that is there goes further."`
	DryRun        bool   `name:"dry-run" help:"Verify the backup and the target, and change nothing."`
	Output        string `short:"o" enum:"text,json" default:"text" help:"text or json."`
}

// Run verifies and restores a backup.
func (c restoreCmd) Run(e *env, m *command.Env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	o := app.RestoreOptions{From: c.From, IdentityFile: c.Identity}
	o.Force, o.IgnoreJournal, o.DryRun = c.Force, c.IgnoreJournal, c.DryRun
	if c.Until != "" {
		if o.Until, err = time.Parse(time.RFC3339, c.Until); err != nil {
			return fmt.Errorf("--until: %q is not a time: write one such as 2026-11-22T14:30:00Z", c.Until)
		}
	}
	bar := m.StartProgress("restoring the backup")
	o.Progress = bar.Report
	done, err := app.Restore(ctx, cfg, o)
	bar.Stop()
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return e.printJSON(restoreSummary(done))
	}
	return e.printRestored(done, c.DryRun)
}

// restoreSummary is a restore as JSON. until is null without a record to process.
func restoreSummary(r *app.Restored) map[string]any {
	var until *time.Time
	if !r.Until.IsZero() {
		until = &r.Until
	}
	return map[string]any{
		"manifest": r.Manifest, "journal_from": r.JournalFrom, "first": r.First, "last": r.Last, "until": until, "kept": r.Kept, "secrets": r.Secrets,
	}
}

func (e *env) printRestored(r *app.Restored, dryRun bool) error {
	m := r.Manifest
	fmt.Fprintf(e.out, "backup of %s by guidon %s: %s, schema %d, %s\n", m.CreatedAt.Format(time.RFC3339), m.Guidon, m.Database, m.Schema, output.Size(m.Bytes()))
	if dryRun {
		_, err := fmt.Fprintf(e.out, "verified; the journal would be from: %s\n", r.JournalFrom)
		return err
	}
	switch {
	case r.JournalFrom == "none":
		fmt.Fprintln(e.out, "restored without a journal")
	case r.Last < r.First:
		fmt.Fprintf(e.out, "restored; the journal of the %s has nothing to process\n", r.JournalFrom)
	default:
		fmt.Fprintf(e.out, "restored; the server will process records %d to %d of the journal of the %s, received until %s\n", r.First, r.Last, r.JournalFrom, r.Until.Format(time.RFC3339))
	}
	for _, path := range r.Kept {
		fmt.Fprintf(e.out, "kept: %s\n", path)
	}
	for _, path := range r.Secrets {
		fmt.Fprintf(e.out, "restored: %s\n", path)
	}
	if len(m.LeftOut) > 0 {
		fmt.Fprintf(e.out, "not in the backup, restore these from elsewhere: %s\n", strings.Join(m.LeftOut, ", "))
	}
	return nil
}

// interruptible returns a context that ends with SIGINT or SIGTERM.
func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

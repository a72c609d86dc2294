package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/movejournal"
)

type journalCmd struct {
	Check       journalCheckCmd       `cmd:"" help:"Read the whole journal and list damaged records; also beside a running server."`
	Repair      journalRepairCmd      `cmd:"" help:"Copy what can be read of a damaged journal into a new file, which takes its place; the damaged file is kept. Stop the server first."`
	Move        movejournal.Command   `cmd:"" help:"Append what is on its way in the journal of a stopped server to the log of journal.url; continue an interrupted move."`
	Acknowledge journalAcknowledgeCmd `cmd:"" help:"Print the incidents of the journal and end them: readiness is degraded until then. Also beside a running server."`
}

var errDamaged = errors.New("damage found")

type journalCheckCmd struct {
	JSON bool `name:"json" help:"Print the report as JSON."`
}

func (c journalCheckCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	r, err := app.CheckJournal(context.Background(), cfg)
	if err != nil {
		return err
	}
	if err := e.printJournal(r, c.JSON); err != nil {
		return err
	}
	if r.Damaged() {
		return fmt.Errorf("%w in the journal %s: see \"The journal is damaged\" in docs/operators.md", errDamaged, r.Path)
	}
	return nil
}

type journalRepairCmd struct {
	DryRun bool `name:"dry-run" help:"Only print what would be lost."`
	JSON   bool `name:"json" help:"Print the report as JSON."`
}

func (c journalRepairCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	r, err := app.RepairJournal(context.Background(), cfg, c.DryRun)
	if err != nil {
		return err
	}
	return e.printJournal(r, c.JSON)
}

type journalAcknowledgeCmd struct{}

// Run prints and acknowledges the incidents of the journal.
func (journalAcknowledgeCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	texts, err := app.AcknowledgeIncidents(cfg)
	for _, text := range texts {
		fmt.Fprintf(e.out, "acknowledged: %s\n", text)
	}
	if err == nil && len(texts) == 0 {
		_, err = fmt.Fprintln(e.out, "no incidents")
	}
	return err
}

// printJournal prints the state of a journal's files.
func (e *env) printJournal(r *app.JournalReport, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(e.out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	c := r.Contents
	fmt.Fprintf(e.out, "journal %s\nrecords %d to %d: %d readable, %d bytes\n", r.Path, c.First, c.Last, c.Records, c.Bytes)
	for _, p := range c.Problems {
		fmt.Fprintf(e.out, "unreadable: %s\n", p)
	}
	for _, d := range c.Damaged {
		fmt.Fprintf(e.out, "lost: records %d to %d, %d bytes: %s\n", d.First, d.Last, d.Bytes, d.Cause)
	}
	switch {
	case r.Running:
		fmt.Fprintln(e.out, "a server has the journal open: the write-ahead log was not checked")
	case r.WAL.IsDamaged():
		fmt.Fprintf(e.out, "write-ahead log: %d frames damaged, %d commits behind them; the next start or repair corrects what it can\n", len(r.WAL.Damaged), r.WAL.LostCommits)
	}
	if len(r.Kept) > 0 {
		fmt.Fprintf(e.out, "kept damaged files: %s\n", strings.Join(r.Kept, " "))
	}
	if r.Repaired != "" {
		_, err := fmt.Fprintf(e.out, "repaired: %d records lost; the damaged file is kept as %s\n", c.Lost(), r.Repaired)
		return err
	}
	if !r.Damaged() {
		fmt.Fprintln(e.out, "no damage found")
	}
	return nil
}

type checkCmd struct{}

// Run checks the database and the journal.
func (checkCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	problems, err := app.CheckDatabase(context.Background(), cfg)
	if err != nil {
		return err
	}
	for _, p := range problems {
		fmt.Fprintf(e.out, "database: %s\n", p)
	}
	if len(problems) == 0 {
		fmt.Fprintln(e.out, "database: no damage found")
	}
	if err := (journalCheckCmd{}).Run(e); err != nil {
		return err
	}
	if len(problems) > 0 {
		return fmt.Errorf("%w in the database: restore a backup, see \"Backup and restore\" in docs/operators.md", errDamaged)
	}
	return nil
}

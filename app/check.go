package app

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/recovery"
)

// JournalReport is the state of a journal's files.
type JournalReport = recovery.Report

// CheckJournal reads the whole journal named by cfg, also beside a running server.
func CheckJournal(ctx context.Context, cfg Config) (*JournalReport, error) {
	return recovery.CheckJournal(ctx, cfg.Journal, cfg.DataDir)
}

// RepairJournal copies what can be read of a damaged journal into a new file and
// keeps the old one. A dry run changes nothing.
func RepairJournal(ctx context.Context, cfg Config, dryRun bool) (*JournalReport, error) {
	return recovery.RepairJournal(ctx, cfg.Journal, cfg.DataDir, dryRun)
}

// CheckDatabase returns the problems that SQLite finds in the structure of the
// database named by cfg; none for Postgres, which checks its pages itself.
func CheckDatabase(ctx context.Context, cfg Config) (problems []string, err error) {
	return db.CheckFile(ctx, cfg.Database, cfg.DataDir)
}

// AcknowledgeIncidents ends the incidents of the journal named by cfg and returns
// their texts, each with its time. It works beside a running server.
func AcknowledgeIncidents(cfg Config) ([]string, error) {
	list, err := recovery.AcknowledgeIncidents(cfg.Journal, cfg.DataDir)
	texts := make([]string, len(list))
	for i, incident := range list {
		texts[i] = incident.At.Format(time.RFC3339) + " " + incident.Text
	}
	return texts, err
}

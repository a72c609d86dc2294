package app

import (
	"context"
	"io"

	"github.com/guidonhq/guidon/core/activity/chain"
	"github.com/guidonhq/guidon/core/commandline"
	"github.com/guidonhq/guidon/core/db"
)

// Admin gives one command of the command line access to the accounts of a database.
type Admin = commandline.Accounts

// OpenAdmin opens the database named by cfg. It fails with the errors of
// db.OpenExisting unless the database exists and has the schema of this binary.
func OpenAdmin(ctx context.Context, cfg Config) (*Admin, error) {
	d, err := openDB(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return commandline.Open(d, cfg.Auth)
}

// Audit gives one command of the command line access to the chain of the activity log,
// with or without a running server.
type Audit struct {
	*chain.Chain
	db *db.DB
}

// AuditHead is the newest entry of the chain.
type AuditHead = chain.Head

// AuditReport is the result of a verification.
type AuditReport = chain.Report

// OpenAudit opens the database named by cfg. It fails with the errors of
// db.OpenExisting unless the database exists and has the schema of this binary.
func OpenAudit(ctx context.Context, cfg Config) (*Audit, error) {
	d, err := openDB(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Audit{chain.New(d), d}, nil
}

// Close closes the database.
func (a *Audit) Close() error { return a.db.Close() }

// ParseAuditHead returns the head of a text that guidon audit head has printed.
func ParseAuditHead(text string) (AuditHead, error) { return chain.Parse(text) }

// VerifyAuditExport verifies the lines of an export.
func VerifyAuditExport(from io.Reader, anchors ...AuditHead) (*AuditReport, error) {
	return chain.VerifyExport(from, anchors...)
}

// openDB opens the database named by cfg for a command. It creates and migrates
// nothing: only Start and Migrate do.
func openDB(ctx context.Context, cfg Config) (*db.DB, error) {
	return db.OpenExisting(ctx, cfg.Database, cfg.DataDir)
}

func closing(c io.Closer, err error) error {
	if closed := c.Close(); err == nil {
		err = closed
	}
	return err
}

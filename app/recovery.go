package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/activity/chain"
	"github.com/guidonhq/guidon/core/backup"
	"github.com/guidonhq/guidon/core/backup/archive"
	"github.com/guidonhq/guidon/core/backup/place"
	"github.com/guidonhq/guidon/core/backup/schedule"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/recovery"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/sdk/units"
)

// The types of backups, for the command line.
type (
	// BackupResult describes a complete backup.
	BackupResult = backup.Result
	// BackupManifest describes the content of a backup.
	BackupManifest = archive.Manifest
	// BackupContent is a verified backup.
	BackupContent = backup.Content
	// BackupFile is a file of a backup.
	BackupFile = backup.FileContent
	// Restored describes a restore.
	Restored = backup.Restored
)

// BackupOptions are the options of Backup.
type BackupOptions struct {
	// To is a file, a directory or s3://…; empty: backup.to of the configuration.
	To string
	// Recipients are age public keys besides those of the configuration.
	Recipients []string
	// RateBytes replaces backup.rate_bytes unless it is negative.
	RateBytes int64
	// ConfigFile is the path of the configuration file; empty: none.
	ConfigFile string
	Version    string
	Progress   func(done, total int64)
}

// Backup writes a backup of the installation that cfg names, also beside a running
// server. The schema may be older than that of this binary. It fails with the errors
// of db.OpenExisting if there is no database, or if its schema is newer.
func Backup(ctx context.Context, cfg Config, o BackupOptions) (*BackupResult, error) {
	target := o.To
	if target == "" {
		target = cfg.Backup.To
	}
	to, name, err := place.Parse(target, cfg.Backup.S3)
	if err != nil {
		return nil, err
	}
	options := backup.Options{BytesPerSecond: cfg.Backup.RateBytes, Timeout: cfg.Backup.Timeout, Progress: o.Progress}
	if o.RateBytes >= 0 {
		options.BytesPerSecond = o.RateBytes
	}
	if options.Recipients, err = backup.ParseRecipients(append(cfg.Backup.Recipients, o.Recipients...)); err != nil {
		return nil, err
	}
	d, err := openAnySchema(ctx, cfg)
	if err != nil {
		return nil, err
	}
	src := backupSource(cfg, d, o.ConfigFile, o.Version)
	made, err := backup.Create(ctx, src, to, name, options)
	if err == nil {
		_ = logOperation(ctx, d, &activity.Event{Scope: "Backup", ItemID: filepath.Base(made.Path), Activity: activity.Created, Name: made.Path})
	}
	return made, closing(d, err)
}

// logOperation adds an operation of the command line on the files of the installation to
// the activity log. A database with an older schema, and one that the command may only
// read, get no entry.
func logOperation(ctx context.Context, d *db.DB, e *activity.Event) error {
	if !hasLog(ctx, d) {
		return nil
	}
	err := activity.NewAudit(d).Change(ctx, activity.CommandLine, func(context.Context) (*activity.Event, error) { return e, nil })
	if err == nil {
		_ = chain.New(d).SealAll(ctx) // else the server does
	}
	return err
}

// hasLog reports whether the database has the activity log of this binary.
func hasLog(ctx context.Context, d *db.DB) bool {
	_, err := chain.New(d).Head(ctx)
	return err == nil
}

// logInDatabase is logOperation with the database of cfg, if there is one.
func logInDatabase(ctx context.Context, cfg Config, e *activity.Event) error {
	d, err := openAnySchema(ctx, cfg)
	if _, missing := errors.AsType[*db.NoDatabaseError](err); missing {
		return nil
	}
	if err == nil {
		err = closing(d, logOperation(ctx, d, e))
	}
	if err != nil {
		return fmt.Errorf("it is done; the activity log has no entry of it: %w", err)
	}
	return nil
}

// loggedBackups returns the function that adds backups of a server to the activity log.
func loggedBackups(audit *activity.Audit, to string) func(context.Context, schedule.Backup) error {
	return func(ctx context.Context, b schedule.Backup) error {
		return audit.Change(ctx, nil, func(context.Context) (*activity.Event, error) {
			return &activity.Event{Scope: "Backup", ItemID: b.Name, Activity: activity.Created, Name: strings.TrimSuffix(to, "/") + "/" + b.Name}, nil
		})
	}
}

// openAnySchema opens an existing database whose schema may be older.
func openAnySchema(ctx context.Context, cfg Config) (*db.DB, error) {
	d, err := openDB(ctx, cfg)
	if _, older := errors.AsType[*db.OlderSchemaError](err); older {
		return db.Open(ctx, cfg.Database, cfg.DataDir)
	}
	return d, err
}

// backupSource describes the installation of cfg.
func backupSource(cfg Config, d *db.DB, configFile, version string) backup.Source {
	plugins := []map[string]string{}
	for _, p := range cfg.Plugins.Instances {
		plugins = append(plugins, map[string]string{"name": p.Name, "kind": p.Kind, "use": p.Use})
	}
	secrets := map[string]string{"payload.key": filepath.Join(cfg.DataDir, "payload.key")}
	if configFile != "" {
		secrets["guidon.yaml"] = configFile
	}
	return backup.Source{
		DB: d, Journal: cfg.Journal.Config, DataDir: cfg.DataDir, Version: version, Secrets: secrets,
		Settings: map[string]any{"data_dir": cfg.DataDir, "journal_dir": cfg.Journal.Dir, "address": cfg.HTTP.Address, "site_url": cfg.HTTP.SiteURL, "plugins": plugins},
	}
}

// ListedBackup is a backup in a directory or a bucket.
type ListedBackup struct {
	Path  string    `json:"path"`
	At    time.Time `json:"at"`
	Bytes int64     `json:"bytes"`
}

// ListBackups returns the backups in a directory or below s3://…, the newest first. An
// empty place is backup.to of the configuration.
func ListBackups(ctx context.Context, cfg Config, in string) ([]ListedBackup, error) {
	where, err := backupDirectory(cfg, in)
	if err != nil {
		return nil, err
	}
	list, err := backup.List(ctx, where)
	out := []ListedBackup{}
	for _, e := range list {
		out = append(out, ListedBackup{where.Path(e.Name), e.At.UTC(), e.Bytes})
	}
	return out, err
}

// backupDirectory returns the place that a target names as a directory.
func backupDirectory(cfg Config, target string) (place.Place, error) {
	if target == "" {
		target = cfg.Backup.To
	}
	if target != "" && !strings.HasSuffix(target, "/") {
		target += "/"
	}
	p, _, err := place.Parse(target, cfg.Backup.S3)
	return p, err
}

// CheckBackup reads a whole backup, verifies its checksums and returns its content.
// from is a file or s3://…, or a directory: then the newest backup in it is checked.
// An empty one is backup.to of the configuration.
func CheckBackup(ctx context.Context, cfg Config, from, identityFile string, progress func(done, total int64)) (*BackupContent, error) {
	if from == "" {
		from = cfg.Backup.To
	}
	in, name, err := place.Parse(from, cfg.Backup.S3)
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name, err = backup.Newest(ctx, in); err != nil {
			return nil, err
		}
	}
	identities, err := readIdentities(identityFile)
	if err != nil {
		return nil, err
	}
	return backup.Check(ctx, in, name, identities, progress)
}

// readIdentities reads the age identities of a file; none without a file.
func readIdentities(path string) ([]age.Identity, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	out, err := backup.ParseIdentities(f)
	return out, errors.Join(err, f.Close())
}

// RestoreOptions are the options of Restore.
type RestoreOptions struct {
	backup.RestoreOptions
	// From is a file or s3://….
	From string
	// IdentityFile holds the age identities that decrypt the backup; empty: none.
	IdentityFile string
}

// Restore puts a backup into the place of the installation that cfg names. See
// backup.Restore.
func Restore(ctx context.Context, cfg Config, o RestoreOptions) (*Restored, error) {
	from, name, err := place.Parse(o.From, cfg.Backup.S3)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, errors.New("name the file of the backup, not its directory")
	}
	if o.Identities, err = readIdentities(o.IdentityFile); err != nil {
		return nil, err
	}
	target := backup.Target{Database: cfg.Database, Journal: cfg.Journal.Config, DataDir: cfg.DataDir, Secrets: map[string]string{
		"payload.key": filepath.Join(cfg.DataDir, "payload.key"), "guidon.yaml": filepath.Join(cfg.DataDir, "guidon.yaml.restored"),
	}}
	done, err := backup.Restore(ctx, target, from, name, o.RestoreOptions)
	if err != nil || o.DryRun {
		return done, err
	}
	return done, logInDatabase(ctx, cfg, &activity.Event{Scope: "Backup", ItemID: name, Activity: "restored", Name: o.From})
}

// ParseSize returns a number of bytes written as 20MB, 20MiB or 20971520.
func ParseSize(written string) (int64, error) { return units.ParseSize(written) }

// JournalReport is the state of a journal's files.
type JournalReport = recovery.Report

// CheckJournal reads the whole journal named by cfg, also beside a running server.
func CheckJournal(ctx context.Context, cfg Config) (*JournalReport, error) {
	return recovery.CheckJournal(ctx, cfg.Journal.Config, cfg.DataDir)
}

// RepairJournal copies what can be read of a damaged journal into a new file and
// keeps the old one. A dry run changes nothing.
func RepairJournal(ctx context.Context, cfg Config, dryRun bool) (*JournalReport, error) {
	r, err := recovery.RepairJournal(ctx, cfg.Journal.Config, cfg.DataDir, dryRun)
	if err != nil || r.Repaired == "" {
		return r, err
	}
	return r, logInDatabase(ctx, cfg, &activity.Event{Scope: "Journal", ItemID: filepath.Base(r.Repaired), Activity: "repaired", Name: r.Path, After: lostRecords{r.Contents.Lost()}})
}

// lostRecords is the result of a repair in the activity log.
type lostRecords struct {
	Lost uint64 `json:"lost_records"`
}

// CheckDatabase returns the problems that SQLite finds in the structure of the
// database named by cfg; none for Postgres, which checks its pages itself.
func CheckDatabase(ctx context.Context, cfg Config) (problems []string, err error) {
	return db.CheckFile(ctx, cfg.Database, cfg.DataDir)
}

// AcknowledgeIncidents ends the incidents of the journal named by cfg and returns
// their texts, each with its time. It works beside a running server.
func AcknowledgeIncidents(cfg Config) ([]string, error) {
	list, err := recovery.AcknowledgeIncidents(cfg.Journal.Config, cfg.DataDir)
	texts := make([]string, len(list))
	for i, incident := range list {
		texts[i] = incident.At.Format(time.RFC3339) + " " + incident.Text
	}
	return texts, err
}

// backupReadiness adds the state of backups to the readiness of the server.
type backupReadiness struct{ backups *schedule.Scheduler }

// Routes registers the field.
func (r backupReadiness) Routes(g *web.Router) {
	g.ReadinessField("backup", func() any { return r.backups.State() })
}

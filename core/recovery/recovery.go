// Package recovery checks the files of a server for damage and repairs the
// journal: the commands `guidon check`, `guidon journal check` and `guidon journal
// repair`.
//
// A check reads everything and changes nothing; it may run beside a server. A
// repair needs a stopped server. It copies what can be read into a new file and
// keeps the damaged one under another name: nothing is ever deleted.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/journal/files"
	"github.com/guidonhq/guidon/core/journal/format"
	"github.com/guidonhq/guidon/core/journal/incident"
	"github.com/guidonhq/guidon/core/journal/mark"
	"github.com/guidonhq/guidon/core/sqlitewal"
)

// Report is the state of a journal's files.
type Report struct {
	Path     string           `json:"path"`
	Running  bool             `json:"running"` // a server has the journal open
	Contents *format.Contents `json:"contents"`
	// WAL is the write-ahead log; it is not checked beside a running server.
	WAL sqlitewal.Report `json:"wal"`
	// Kept are damaged files that a repair or a start has set aside.
	Kept []string `json:"kept"`
	// Repaired is the name under which this repair kept the damaged file.
	Repaired string `json:"repaired,omitempty"`
}

// Damaged reports whether data is lost or will be.
func (r *Report) Damaged() bool {
	return len(r.Contents.Damaged) > 0 || len(r.Contents.Problems) > 0 || r.WAL.IsDamaged()
}

// ErrNoJournal is the error of a directory without a journal.
var ErrNoJournal = errors.New("there is no journal in this directory")

// CheckJournal reads the whole journal of a data directory.
func CheckJournal(ctx context.Context, cfg journal.Config, dataDir string) (*Report, error) {
	dir, err := cfg.Directory(dataDir)
	if err != nil {
		return nil, err
	}
	r := &Report{Path: filepath.Join(dir, format.FileName)}
	if _, err := os.Stat(r.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", r.Path, ErrNoJournal)
	}
	lock, err := journal.AcquireLock(cfg, dataDir)
	switch {
	case err == nil:
		defer func() { _ = lock.Release() }()
	case errors.Is(err, journal.ErrLocked):
		r.Running = true
	default:
		return nil, err
	}
	return r, r.survey(ctx, dir)
}

func (r *Report) survey(ctx context.Context, dir string) (err error) {
	path := r.Path
	if !r.Running {
		page, err := sqlitewal.PageSize(path, format.PageBytes)
		if err != nil {
			return err
		}
		if r.WAL, err = sqlitewal.Check(path+"-wal", page); err != nil {
			return err
		}
	}
	if r.Kept, err = filepath.Glob(path + "*.damaged-*"); err != nil {
		return err
	}
	m, _, err := mark.Read(filepath.Join(dir, journal.MarkName))
	if err != nil && !errors.Is(err, mark.ErrDamaged) {
		return err
	}
	r.Contents, err = format.Survey(ctx, path, 0, nil)
	if err == nil && m.ID == r.Contents.ID && m.Last > r.Contents.Last {
		r.Contents, err = format.Survey(ctx, path, m.Last, nil)
	}
	return err
}

// RepairJournal copies what can be read of a damaged journal into a new file and
// keeps the old one. It changes nothing if the journal is intact, or if dryRun is
// true.
func RepairJournal(ctx context.Context, cfg journal.Config, dataDir string, dryRun bool) (*Report, error) {
	r, err := CheckJournal(ctx, cfg, dataDir)
	if err != nil || dryRun || !r.Damaged() {
		return r, err
	}
	if r.Running {
		return nil, fmt.Errorf("a server has the journal %s open: stop it, then run this command again", r.Path)
	}
	dir := filepath.Dir(r.Path)
	lock, err := journal.AcquireLock(cfg, dataDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Release() }()
	if _, err := files.FinishReplace(r.Path); err != nil { // removes the copy of a repair that was killed
		return nil, err
	}
	kept := files.AsidePath(r.Path)
	if r.WAL.IsDamaged() {
		if err := repairWAL(r.Path, kept); err != nil {
			return nil, err
		}
	}
	m, _, _ := mark.Read(filepath.Join(dir, journal.MarkName)) // without it, the newest record of the file counts
	if r.Contents.ID != "" && m.ID != r.Contents.ID {
		m = mark.Mark{}
	}
	c, err := format.Copy(ctx, r.Path, files.CopyPath(r.Path), format.Copying{ID: m.ID, Last: m.Last})
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", r.Path, err)
	}
	r.Contents, r.Repaired = c, kept
	return r, files.Replace(r.Path, kept)
}

// repairWAL puts a corrected write-ahead log in the place of a damaged one.
func repairWAL(path, kept string) error {
	page, err := sqlitewal.PageSize(path, format.PageBytes)
	if err != nil {
		return err
	}
	_, written, err := sqlitewal.Repair(path+"-wal", path+"-wal.new", page, true)
	if err != nil || !written {
		return err
	}
	return errors.Join(os.Rename(path+"-wal", kept+"-wal.original"), os.Rename(path+"-wal.new", path+"-wal"))
}

// AcknowledgeIncidents ends the incidents of the journal of a data directory and
// returns them. It works beside a running server.
func AcknowledgeIncidents(cfg journal.Config, dataDir string) ([]incident.Incident, error) {
	dir, err := cfg.Directory(dataDir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoJournal)
	}
	return incident.File{Path: filepath.Join(dir, incident.FileName)}.Acknowledge()
}

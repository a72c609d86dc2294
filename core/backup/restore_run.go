package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/backup/archive"
	"github.com/guidonhq/guidon/core/backup/place"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/journal/files"
	"github.com/guidonhq/guidon/core/journal/format"
	"github.com/guidonhq/guidon/core/journal/mark"
)

// restore is a restore in progress.
type restore struct {
	Target
	RestoreOptions
	from place.Place
	name string
	m    *archive.Manifest
	out  *Restored

	journalDir string
	found      *archive.Journal // the journal of the installation; nil without one
	cut        bool             // the journal ends at Until
}

// The files of a restore in progress.
const (
	restoringSuffix = ".restoring"
	incompleteName  = "restore.incomplete"
)

// CheckComplete returns an error if a restore into the data directory was
// interrupted.
func CheckComplete(dataDir string) error {
	path := filepath.Join(dataDir, incompleteName)
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for an interrupted restore: %w", err)
	}
	return fmt.Errorf("a restore into %s was interrupted: run guidon restore with --force again, or, to use what is there, remove %s", dataDir, path)
}

// plan checks the target and decides which journal is used.
func (r *restore) plan(ctx context.Context) (err error) {
	if r.journalDir, err = r.Journal.Directory(r.DataDir); err != nil {
		return err
	}
	if err := r.checkEmpty(ctx); err != nil {
		return err
	}
	if err := r.chooseJournal(ctx); err != nil {
		return err
	}
	if r.Until.IsZero() {
		return nil
	}
	if r.Until.Before(r.m.CreatedAt) {
		return fmt.Errorf("the backup is of %s, later than --until: restore an older backup", r.m.CreatedAt.Format(time.RFC3339))
	}
	if r.out.JournalFrom == "none" {
		return errors.New("there is no journal, in the backup or in the installation, from which --until could be restored")
	}
	return nil
}

// checkEmpty returns ErrNotEmpty if the target has a database and Force is not set.
func (r *restore) checkEmpty(ctx context.Context) error {
	if r.Force {
		return nil
	}
	where, err := r.databaseContent(ctx)
	if err == nil && where != "" {
		err = fmt.Errorf("%s: %w", where, ErrNotEmpty)
	}
	return err
}

// databaseContent returns the name of the database of the target if it holds data.
func (r *restore) databaseContent(ctx context.Context) (string, error) {
	if r.m.Database == "postgres" {
		return postgresContent(ctx, r.Database)
	}
	path, err := r.Database.SQLiteFile(r.DataDir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return "", nil
	}
	return path, err
}

// chooseJournal decides between the journal of the installation and that of the
// backup. The first is used if it continues the second.
func (r *restore) chooseJournal(ctx context.Context) error {
	path := r.journalPath()
	if _, err := os.Stat(path); err == nil {
		if err := checkJournalLog(path); err != nil && !r.IgnoreJournal {
			return err
		}
		s, err := openJournalFile(ctx, path)
		if err != nil && !r.IgnoreJournal {
			return fmt.Errorf("read the journal of the target: %w", err)
		}
		if err == nil {
			r.found = &s.info
			s.Close()
		}
	}
	ours := r.found != nil && !r.IgnoreJournal
	switch {
	case ours && r.continues():
		r.out.JournalFrom = "installation"
	case ours && !r.Force:
		return fmt.Errorf("the journal in %s does not continue the one of the backup: %w", r.journalDir, ErrNotEmpty)
	case r.found != nil && !r.Force:
		return fmt.Errorf("%s: %w", path, ErrNotEmpty)
	case r.m.Journal != nil:
		r.out.JournalFrom = "backup"
	default:
		r.out.JournalFrom = "none"
	}
	return nil
}

// continues reports whether the journal of the installation holds each record that
// the database of the backup has not processed, up to the end of the backup or later.
func (r *restore) continues() bool {
	if r.m.Journal != nil && (r.found.ID != r.m.Journal.ID || r.found.Last < r.m.Journal.Last) {
		return false
	}
	known := r.m.Journal != nil && r.found.First <= r.m.Journal.First // without a cursor nothing is processed
	for _, c := range r.m.Cursors {
		known = known || c.Journal == r.found.ID
		if c.Journal == r.found.ID && (c.Seq+1 < r.found.First || c.Seq > r.found.Last) {
			return false
		}
	}
	return known
}

func (r *restore) journalPath() string { return filepath.Join(r.journalDir, format.FileName) }

// run extracts the backup beside the target and then exchanges the files.
func (r *restore) run(ctx context.Context) error {
	e := &extraction{r: r}
	defer e.remove()
	if err := e.extract(ctx); err != nil {
		return err
	}
	if err := r.endJournal(ctx, e); err != nil {
		return err
	}
	if err := r.markIncomplete(); err != nil {
		return err
	}
	if err := e.install(ctx); err != nil {
		return err
	}
	if err := r.describe(ctx); err != nil {
		return err
	}
	return errors.Join(os.Remove(r.marker()), files.SyncDir(r.DataDir))
}

func (r *restore) marker() string { return filepath.Join(r.DataDir, incompleteName) }

// markIncomplete keeps servers from starting. It precedes the first change of the
// target: the exchange of files, or the removal of the tables of Postgres.
func (r *restore) markIncomplete() error {
	return writeSynced(r.marker(), []byte(r.from.Path(r.name)+"\n"))
}

// endJournal ends the journal at Until, if there are later records.
func (r *restore) endJournal(ctx context.Context, e *extraction) error {
	if r.Until.IsZero() {
		return nil
	}
	from := r.journalPath()
	if r.out.JournalFrom == "backup" {
		from = e.journal()
	}
	last, found, err := lastUntil(ctx, from, r.Until)
	if err != nil || !found {
		return err
	}
	var readers []format.Reader
	for _, c := range r.m.Cursors {
		if c.Seq > last {
			return fmt.Errorf("the database in the backup has processed record %d, which was received after --until: restore an older backup", c.Seq)
		}
	}
	s, err := openJournalFile(ctx, from)
	if err != nil {
		return err
	}
	for _, p := range s.info.Readers {
		if p.Seq >= last {
			p.Seq, p.Index = last, 0
		}
		readers = append(readers, format.Reader{Name: p.Name, Seq: int64(p.Seq), Index: int64(p.Index), Count: int64(p.Count)})
	}
	first := s.info.First
	s.Close()
	r.cut = true
	_ = os.Remove(e.ended())
	_, err = format.Copy(ctx, from, e.ended(), format.Copying{First: first, Last: last, Exact: true, Readers: readers})
	return err
}

// describe fills in what the server will process, and marks the end of the journal.
func (r *restore) describe(ctx context.Context) error {
	if r.out.JournalFrom == "none" {
		return nil
	}
	s, err := openJournalFile(ctx, r.journalPath())
	if err != nil {
		return err
	}
	defer s.Close()
	r.out.First, r.out.Last = s.info.First, s.info.Last
	for _, c := range r.m.Cursors {
		if c.Journal == s.info.ID && c.Name == liveReader {
			r.out.First = c.Seq + 1
		}
	}
	if r.out.Until, err = s.newest(ctx); err != nil {
		return err
	}
	if r.out.JournalFrom == "installation" && !r.cut {
		return nil
	}
	path := filepath.Join(r.journalDir, journal.MarkName)
	_ = os.Remove(path)
	f, err := mark.Open(path, s.info.ID)
	if err != nil {
		return err
	}
	return f.Close(s.info.Last)
}

// liveReader is the cursor of the worker for live events.
const liveReader = "worker"

// extraction is the content of a backup in files beside those of the target.
type extraction struct {
	r       *restore
	open    *os.File
	name    string // of the file in the archive that is open
	secrets map[string][]byte
	load    *postgresLoad
}

func (e *extraction) journal() string { return e.r.journalPath() + restoringSuffix }
func (e *extraction) ended() string   { return e.r.journalPath() + ".ended" }

func (e *extraction) database() (string, error) {
	path, err := e.r.Database.SQLiteFile(e.r.DataDir)
	return path + restoringSuffix, err
}

// remove removes files that were not installed.
func (e *extraction) remove() {
	if e.open != nil {
		_ = e.open.Close()
	}
	if e.load != nil {
		e.load.Abort()
	}
	paths := []string{e.journal(), e.ended()}
	if path, err := e.database(); err == nil && e.r.m.Database == "sqlite" {
		paths = append(paths, path)
	}
	for _, path := range paths {
		_ = os.Remove(path) // is mostly not there
		for _, suffix := range []string{"-wal", "-shm"} {
			_ = os.Remove(path + suffix)
		}
	}
}

// extract reads the backup a second time, and verifies it again.
func (e *extraction) extract(ctx context.Context) error {
	var done int64
	total := e.r.m.Bytes()
	e.secrets = map[string][]byte{}
	m, err := walk(ctx, e.r.from, e.r.name, e.r.Identities, func(_ archive.Header, file string, content []byte) error {
		done += int64(len(content))
		if e.r.Progress != nil {
			e.r.Progress(done, total)
		}
		return e.part(ctx, file, content)
	})
	if err == nil {
		err = e.closeFile()
	}
	if err == nil && e.load != nil {
		err = e.load.endTable()
	}
	if err == nil && !slices.Equal(m.Parts, e.r.m.Parts) {
		err = errors.New("the backup was replaced while it was read")
	}
	return err
}

// part adds a part to its file.
func (e *extraction) part(ctx context.Context, file string, content []byte) error {
	if name, ok := strings.CutPrefix(file, secretPrefix); ok {
		e.secrets[name] = append(e.secrets[name], content...)
		return nil
	}
	if file == fileTables || strings.HasPrefix(file, tablePrefix) {
		return e.tablePart(ctx, file, content)
	}
	if file != e.name {
		if err := e.openFile(file); err != nil {
			return err
		}
	}
	if e.open == nil { // a file that is not used
		return nil
	}
	_, err := e.open.Write(content)
	return err
}

func (e *extraction) openFile(file string) (err error) {
	if err := e.closeFile(); err != nil {
		return err
	}
	e.name = file
	path := ""
	switch file {
	case fileJournal:
		if e.r.out.JournalFrom == "backup" {
			path = e.journal()
		}
	case fileDatabase:
		if path, err = e.database(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the backup holds the file %q, which this version does not know", file)
	}
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	e.open, err = os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	return err
}

func (e *extraction) closeFile() error {
	if e.open == nil {
		return nil
	}
	f := e.open
	e.open = nil
	return errors.Join(f.Sync(), f.Close())
}

// install puts the files into the place of those of the target, which it keeps.
func (e *extraction) install(ctx context.Context) error {
	kept := ".replaced-" + time.Now().UTC().Format("20060102T150405.000000")
	from := ""
	switch {
	case e.r.cut:
		from = e.ended()
	case e.r.out.JournalFrom == "backup":
		from = e.journal()
	}
	if from != "" {
		if err := e.exchange(from, e.r.journalPath(), kept); err != nil {
			return err
		}
	}
	if err := e.installDatabase(ctx, kept); err != nil {
		return err
	}
	return e.installSecrets()
}

func (e *extraction) installDatabase(ctx context.Context, kept string) error {
	if e.r.m.Database == "postgres" {
		return e.load.commit(ctx)
	}
	from, err := e.database()
	if err != nil {
		return err
	}
	return e.exchange(from, strings.TrimSuffix(from, restoringSuffix), kept)
}

// exchange renames a file to path and keeps the one that is there with its logs.
func (e *extraction) exchange(from, path, kept string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Rename(path+suffix, path+kept+suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if suffix == "" {
			e.r.out.Kept = append(e.r.out.Kept, path+kept)
		}
	}
	if err := os.Rename(from, path); err != nil {
		return err
	}
	return files.SyncDir(filepath.Dir(path))
}

// installSecrets writes the files with secrets that are missing.
func (e *extraction) installSecrets() error {
	for _, name := range slices.Sorted(maps.Keys(e.secrets)) {
		path := e.r.Secrets[name]
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := writeSynced(path, e.secrets[name]); err != nil {
			return err
		}
		e.r.out.Secrets = append(e.r.out.Secrets, path)
	}
	return nil
}

// writeSynced writes a durable file that only its owner can read.
func writeSynced(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close(), files.SyncDir(filepath.Dir(path)))
}

package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/backup"
	"github.com/guidonhq/guidon/core/backup/archive"
	"github.com/guidonhq/guidon/core/backup/place"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// installation is a database and a journal, with a worker as the server has one: it
// writes a row for each record, and its cursor, in one transaction.
type installation struct {
	url, dir string
	db       *db.DB
	journal  journal.Journal
	id       string
	acked    atomic.Uint64 // the newest record of which all before are acknowledged
	stop     func()
}

func journalConfig() journal.Config {
	c := journal.DefaultConfig()
	c.MinFreeBytes = 0
	return c
}

// both runs a test with a database of each kind.
func both(t *testing.T, test func(t *testing.T, url func() string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, func() string { return "" })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, func() string { return dbtest.PostgresURL(t) })
	})
}

// emptyLike returns the URL of an empty database of the same kind.
func emptyLike(t *testing.T, url string) string {
	if url == "" {
		return ""
	}
	return dbtest.EmptyPostgresURL(t)
}

// open opens an installation without a worker.
func open(t *testing.T, url, dir string) *installation {
	t.Helper()
	i := &installation{url: url, dir: dir}
	var err error
	i.db, err = db.Open(t.Context(), db.Config{URL: url}, dir)
	must(t, err)
	must(t, i.db.Migrate(t.Context()))
	i.journal, err = journal.Open(journalConfig(), dir, zap.NewNop(), nil)
	must(t, err)
	stats, err := i.journal.Stats(t.Context())
	must(t, err)
	i.id = stats.ID
	i.stop = func() {}
	t.Cleanup(i.close)
	return i
}

func (i *installation) close() {
	i.stop()
	_ = i.journal.Close(context.Background())
	_ = i.db.Close()
}

const insertSQL = "INSERT INTO ingestion_warnings (project_id, type, key, hour, dropped, count, first_at, last_at, event_uuid, details) VALUES (1, 'test', '%d', 0, false, 1, 0, 0, '', '%s')"

// run appends and processes until stop is called. The worker stays behind. run
// returns after the first transaction of the worker.
func (i *installation) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	_, err := i.journal.Register(ctx, "worker", journal.Begin)
	must(t, err)
	_, err = i.journal.Register(ctx, "sink/slow", journal.Begin)
	must(t, err)
	var running sync.WaitGroup
	begun := make(chan struct{})
	began := sync.OnceFunc(func() { close(begun) })
	running.Go(func() {
		for ctx.Err() == nil {
			seq, err := i.journal.Append(context.Background(), fmt.Appendf(nil, "record %s", strings.Repeat("x", 500)))
			if err != nil {
				t.Error(err)
				return
			}
			i.acked.Store(seq)
		}
	})
	running.Go(func() {
		defer began()
		for after := uint64(0); ctx.Err() == nil; {
			if err := i.journal.Wait(ctx, after); err != nil {
				return
			}
			records, err := i.journal.Read(ctx, after, 50, 1<<20)
			if err != nil {
				return
			}
			must(t, i.process(records))
			began()
			after = records[len(records)-1].Seq
			_ = i.journal.Commit(ctx, "worker", journal.Position{Seq: after})
			time.Sleep(time.Millisecond)
		}
	})
	i.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	<-begun
}

func (i *installation) process(records []journal.Record) error {
	ctx := context.Background()
	return i.db.Tx(ctx, func(ctx context.Context) error {
		for _, r := range records {
			if _, err := i.db.Write(ctx).ExecContext(ctx, fmt.Sprintf(insertSQL, r.Seq, strings.Repeat("y", 300))); err != nil {
				return err
			}
		}
		last := records[len(records)-1].Seq
		_, err := i.db.Write(ctx).ExecContext(ctx, fmt.Sprintf(`INSERT INTO ingestion_cursors (name, journal, seq, idx, count, updated_at) VALUES ('worker', '%s', %d, 0, 0, 0)
			ON CONFLICT (name) DO UPDATE SET seq = EXCLUDED.seq`, i.id, last))
		return err
	})
}

// processed returns the number of records that the database has, and the cursor.
func (i *installation) processed(t *testing.T) (rows, last, cursor uint64) {
	t.Helper()
	must(t, i.db.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*), coalesce(max(CAST(key AS bigint)), 0) FROM ingestion_warnings").Scan(&rows, &last))
	must(t, i.db.Read(t.Context()).QueryRowContext(t.Context(), "SELECT coalesce(max(seq), 0) FROM ingestion_cursors").Scan(&cursor))
	return rows, last, cursor
}

// readable returns the last record that can be read after another without a gap.
func (i *installation) readable(t *testing.T, after uint64) uint64 {
	t.Helper()
	for {
		records, err := i.journal.Read(t.Context(), after, 1000, 1<<20)
		must(t, err)
		if len(records) == 0 {
			return after
		}
		for _, r := range records {
			if r.Seq != after+1 {
				t.Fatalf("record %d follows %d", r.Seq, after)
			}
			after = r.Seq
		}
	}
}

func (i *installation) waitAcked(t *testing.T, n uint64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); i.acked.Load() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timeout")
		}
	}
}

func (i *installation) source() backup.Source {
	return backup.Source{DB: i.db, Journal: journalConfig(), DataDir: i.dir, Serving: true, Version: "test"}
}

func target(url, dir string) backup.Target {
	return backup.Target{Database: db.Config{URL: url}, Journal: journalConfig(), DataDir: dir}
}

func local(t testing.TB, path string) (place.Place, string) {
	t.Helper()
	p, name, err := place.Parse(path, place.S3{})
	must(t, err)
	return p, name
}

// Each event that was acknowledged before the backup began is in the database of the
// backup or, behind its cursor, in the journal of the backup.
func TestBackupWhileEventsFlow(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url func() string) {
		i := open(t, url(), t.TempDir())
		i.run(t)
		i.waitAcked(t, 500)
		for round := range 2 {
			i.waitAcked(t, i.acked.Load()+200)
			acked := i.acked.Load()
			p, name := local(t, filepath.Join(t.TempDir(), "one.guidon-backup"))
			made, err := backup.Create(t.Context(), i.source(), p, name, backup.Options{})
			must(t, err)
			dir, empty := t.TempDir(), emptyLike(t, i.url)
			got, err := backup.Restore(t.Context(), target(empty, dir), p, name, backup.RestoreOptions{})
			must(t, err)
			if got.JournalFrom != "backup" {
				t.Errorf("round %d: the journal is from the %s", round, got.JournalFrom)
			}
			r := open(t, empty, dir)
			rows, last, cursor := r.processed(t)
			if rows != last || cursor != last || last == 0 {
				t.Errorf("round %d: %d rows, the last is %d, the cursor %d", round, rows, last, cursor)
			}
			if c := made.Manifest.Cursors; len(c) != 1 || c[0].Seq != cursor || c[0].Journal != r.id {
				t.Errorf("round %d: cursors %+v", round, c)
			}
			if end := r.readable(t, cursor); end < acked {
				t.Errorf("round %d: acknowledged %d, the backup ends at %d", round, acked, end)
			}
			if stats, err := r.journal.Stats(t.Context()); err != nil || len(stats.Incidents) > 0 || len(stats.Damaged) > 0 || len(stats.Readers) != 2 {
				t.Errorf("round %d: %+v %v", round, stats, err)
			}
			r.close()
		}
	})
}

// The journal of the installation continues the backup: nothing is lost.
func TestRestoreBesideTheJournal(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url func() string) {
		i := open(t, url(), t.TempDir())
		i.run(t)
		i.waitAcked(t, 300)
		p, name := local(t, t.TempDir()+"/")
		made, err := backup.Create(t.Context(), i.source(), p, name, backup.Options{})
		must(t, err)
		i.waitAcked(t, made.Manifest.Journal.Last+300)
		_, err = backup.Restore(t.Context(), target(i.url, i.dir), p, made.Name, backup.RestoreOptions{Force: true})
		if !errors.Is(err, journal.ErrLocked) {
			t.Fatalf("restored beside a server: %v", err)
		}
		i.close()
		acked := i.acked.Load()
		if _, err = backup.Restore(t.Context(), target(i.url, i.dir), p, made.Name, backup.RestoreOptions{}); !errors.Is(err, backup.ErrNotEmpty) {
			t.Fatalf("restored into a database with data: %v", err)
		}
		got, err := backup.Restore(t.Context(), target(i.url, i.dir), p, made.Name, backup.RestoreOptions{Force: true})
		must(t, err)
		r := open(t, i.url, i.dir)
		rows, last, cursor := r.processed(t)
		if rows != last || cursor != last || cursor != made.Manifest.Cursors[0].Seq {
			t.Errorf("%d rows, the last is %d, the cursor %d, in the backup %+v", rows, last, cursor, made.Manifest.Cursors)
		}
		if end := r.readable(t, cursor); end < acked || got.JournalFrom != "installation" || got.First != cursor+1 || got.Last != end {
			t.Errorf("acknowledged %d, the journal ends at %d: %+v", acked, end, got)
		}
	})
}

// The journal of the installation continues a backup that was made before the first
// record was processed.
func TestRestoreBesideTheJournalWithoutACursor(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url func() string) {
		i := open(t, url(), t.TempDir())
		appendTen := func() {
			for range 10 {
				_, err := i.journal.Append(t.Context(), []byte("record"))
				must(t, err)
			}
		}
		appendTen()
		p, name := local(t, t.TempDir()+"/")
		made, err := backup.Create(t.Context(), i.source(), p, name, backup.Options{})
		must(t, err)
		appendTen()
		i.close()
		got, err := backup.Restore(t.Context(), target(i.url, i.dir), p, made.Name, backup.RestoreOptions{Force: true})
		must(t, err)
		if got.JournalFrom != "installation" || got.First != 1 || got.Last != 20 {
			t.Errorf("%+v", got)
		}
	})
}

// --until ends the journal between two records, and the next record continues there.
func TestRestoreUntil(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url func() string) {
		i := open(t, url(), t.TempDir())
		i.run(t)
		i.waitAcked(t, 100)
		p, name := local(t, t.TempDir()+"/")
		made, err := backup.Create(t.Context(), i.source(), p, name, backup.Options{})
		must(t, err)
		i.waitAcked(t, made.Manifest.Journal.Last+50)
		before := i.acked.Load()
		time.Sleep(5 * time.Millisecond)
		until := time.Now()
		time.Sleep(5 * time.Millisecond)
		after := i.acked.Load()
		i.waitAcked(t, after+50)
		i.close()
		restore := func(at time.Time) (*backup.Restored, error) {
			return backup.Restore(t.Context(), target(i.url, i.dir), p, made.Name, backup.RestoreOptions{Force: true, Until: at})
		}
		if _, err := restore(made.Manifest.CreatedAt.Add(-time.Minute)); err == nil || !strings.Contains(err.Error(), "older backup") {
			t.Fatalf("restored a time before the backup: %v", err)
		}
		got, err := restore(until)
		must(t, err)
		r := open(t, i.url, i.dir)
		_, _, cursor := r.processed(t)
		end := r.readable(t, cursor)
		if end < before || end > after+1 || got.Last != end || got.Until.After(until) {
			t.Errorf("the journal ends at %d, want %d to %d; %+v", end, before, after, got)
		}
		stats, err := r.journal.Stats(t.Context())
		must(t, err)
		for _, reader := range stats.Readers {
			if reader.Position.Seq > end {
				t.Errorf("reader %+v is behind the end %d", reader, end)
			}
		}
		if len(stats.Incidents) > 0 || len(stats.Damaged) > 0 || stats.ID != i.id {
			t.Errorf("%+v", stats)
		}
		if next, err := r.journal.Append(t.Context(), []byte("new")); err != nil || next != end+1 {
			t.Errorf("the next record is %d after %d: %v", next, end, err)
		}
	})
}

// A damaged byte anywhere is refused before anything is changed.
func TestDamagedBackupIsRefused(t *testing.T) {
	t.Parallel()
	i := open(t, "", t.TempDir())
	i.run(t)
	i.waitAcked(t, 20)
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	for _, recipients := range [][]age.Recipient{nil, {identity.Recipient()}} {
		dir := t.TempDir()
		p, name := local(t, filepath.Join(dir, "one"))
		_, err := backup.Create(t.Context(), i.source(), p, name, backup.Options{Recipients: recipients})
		must(t, err)
		content, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		empty := filepath.Join(t.TempDir(), "data")
		refused := func(what string, content []byte) {
			t.Helper()
			must(t, os.WriteFile(filepath.Join(dir, "damaged"), content, 0o600))
			p, name := local(t, filepath.Join(dir, "damaged"))
			if _, err := backup.Restore(t.Context(), target("", empty), p, name, backup.RestoreOptions{Identities: []age.Identity{identity}}); err == nil {
				t.Fatalf("%s: restored", what)
			}
			if _, err := os.Stat(empty); !os.IsNotExist(err) {
				t.Fatalf("%s: %s exists", what, empty)
			}
		}
		step := max(1, len(content)/150)
		for at := 0; at < len(content); at += step {
			changed := bytes.Clone(content)
			changed[at] ^= 1 << (at % 8)
			refused("byte "+strconv.Itoa(at), changed)
			refused("truncated to "+strconv.Itoa(at), content[:at])
		}
		refused("longer", append(bytes.Clone(content), 0))
	}
	i.stop()
}

// The wrong key, no key, another kind of database and a newer schema are refused with
// one sentence each.
func TestRefusals(t *testing.T) {
	t.Parallel()
	i := open(t, "", t.TempDir())
	key, err := age.GenerateX25519Identity()
	must(t, err)
	other, err := age.GenerateX25519Identity()
	must(t, err)
	p, name := local(t, t.TempDir()+"/")
	made, err := backup.Create(t.Context(), i.source(), p, name, backup.Options{Recipients: []age.Recipient{key.Recipient()}})
	must(t, err)
	empty := filepath.Join(t.TempDir(), "data")
	restore := func(to backup.Target, identities ...age.Identity) error {
		_, err := backup.Restore(t.Context(), to, p, made.Name, backup.RestoreOptions{Identities: identities})
		return err
	}
	if err := restore(target("", empty)); !errors.Is(err, archive.ErrEncrypted) {
		t.Errorf("without a key: %v", err)
	}
	if err := restore(target("", empty), other); !errors.Is(err, archive.ErrWrongKey) {
		t.Errorf("with another key: %v", err)
	}
	if err := restore(target("postgres://me@localhost/none", empty), key); err == nil || !strings.Contains(err.Error(), "same kind") {
		t.Errorf("into Postgres: %v", err)
	}
	exec := func(q string) {
		_, err := i.db.Write(t.Context()).ExecContext(t.Context(), q)
		must(t, err)
	}
	exec("INSERT INTO schema_migrations (number, name, applied_at) VALUES (9999, 'future', 0)")
	made, err = backup.Create(t.Context(), i.source(), p, "", backup.Options{})
	must(t, err)
	if err := restore(target("", empty)); err == nil || !strings.Contains(err.Error(), "newer guidon") {
		t.Errorf("a newer schema: %v", err)
	}
	if _, err := os.Stat(empty); !os.IsNotExist(err) {
		t.Errorf("%s exists", empty)
	}
}

// A backup that ends early leaves no file with its name.
func TestInterruptedBackupLeavesNoFile(t *testing.T) {
	t.Parallel()
	i := open(t, "", t.TempDir())
	i.run(t)
	i.waitAcked(t, 100)
	dir := t.TempDir()
	p, name := local(t, filepath.Join(dir, "one"))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := backup.Create(ctx, i.source(), p, name, backup.Options{BytesPerSecond: 300_000, Progress: func(done, total int64) {
		if done > 300_000 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v %v", entries, err)
	}
}

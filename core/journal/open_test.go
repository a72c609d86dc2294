package journal_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
)

func file(dir string) string { return filepath.Join(dir, "journal", "journal.db") }

func TestSecondOpenIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, testConfig(), dir, journal.Hooks{})
	_, err := journal.Open(testConfig(), dir, zap.NewNop(), nil)
	if err == nil || !strings.Contains(err.Error(), file(dir)) || !strings.Contains(err.Error(), "already open by process") {
		t.Errorf("got %v, want an error that names the path and the process", err)
	}
	if err := j.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	open(t, testConfig(), dir, journal.Hooks{})
}

func TestOpenRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"a file that is no database", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, bytes.Repeat([]byte("no"), 5000), 0o600))
		}, "not a database"},
		{"a database that is no journal", func(t *testing.T, path string) {
			query(t, path, "CREATE TABLE users (name TEXT)")
		}, "not a journal"},
		{"a journal of a newer version", func(t *testing.T, path string) {
			must(t, open(t, testConfig(), filepath.Dir(filepath.Dir(path)), journal.Hooks{}).Close(context.Background()))
			query(t, path, "PRAGMA user_version = 99")
		}, "newer version (layout 99"},
		{"a journal whose head is missing", func(t *testing.T, path string) {
			must(t, open(t, testConfig(), filepath.Dir(filepath.Dir(path)), journal.Hooks{}).Close(context.Background()))
			query(t, path, "DELETE FROM head")
		}, "guidon journal repair"},
		{"a journal with a value of another type", func(t *testing.T, path string) {
			must(t, open(t, testConfig(), filepath.Dir(filepath.Dir(path)), journal.Hooks{}).Close(context.Background()))
			query(t, path, "UPDATE head SET next_seq = 'x'")
		}, "guidon journal repair"},
		{"a directory", func(t *testing.T, path string) {
			must(t, os.Mkdir(path, 0o700))
		}, "is a directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must(t, os.MkdirAll(filepath.Join(dir, "journal"), 0o700))
			c.make(t, file(dir))
			_, err := journal.Open(testConfig(), dir, zap.NewNop(), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file(dir)) {
				t.Errorf("got %v, want an error with %q that names the path", err, c.want)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// query runs one statement on a closed file.
func query(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	_, err = db.ExecContext(context.Background(), statement)
	must(t, errors.Join(err, db.Close()))
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	must(t, journal.DefaultConfig().Validate())
	_, err := journal.Open(journal.Config{MinFreePercent: 100, MaxAge: -1}, t.TempDir(), zap.NewNop(), nil)
	for _, key := range []string{"min_free_percent", "max_age", "max_record_bytes", "max_group_bytes", "max_queue_records", "trim_interval"} {
		if err == nil || !strings.Contains(err.Error(), "journal."+key+" ") {
			t.Errorf("the error does not name %s: %v", key, err)
		}
	}
}

func TestAnotherDirectory(t *testing.T) {
	t.Parallel()
	cfg, dir := testConfig(), t.TempDir()
	cfg.Dir = filepath.Join(dir, "a fast disk?", "100%")
	j := open(t, cfg, t.TempDir(), journal.Hooks{})
	_, err := j.Append(context.Background(), nil)
	must(t, err)
	_, err = os.Stat(filepath.Join(cfg.Dir, "journal.db"))
	must(t, err)
}

func TestDamagedRecordIsReportedNotReturned(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), context.Background()
	j := open(t, testConfig(), dir, journal.Hooks{})
	for _, data := range []string{"the first", "a record that will be damaged", "the last"} {
		_, err := j.Append(ctx, []byte(data))
		must(t, err)
	}
	_, err := j.Register(ctx, "reader", journal.Begin)
	must(t, err)
	must(t, j.Commit(ctx, "reader", journal.Position{Seq: 1}))
	must(t, j.Close(ctx))
	content, err := os.ReadFile(file(dir))
	must(t, err)
	must(t, os.WriteFile(file(dir), bytes.Replace(content, []byte("will be"), []byte("was not"), 1), 0o600))

	j = open(t, testConfig(), dir, journal.Hooks{})
	before, err := j.Read(ctx, 0, 10, 1000)
	must(t, err)
	_, err = j.Read(ctx, 1, 10, 1000)
	damaged, ok := errors.AsType[*journal.DamagedError](err)
	if !ok || damaged.First != 2 || damaged.Last != 2 || fault.KindOf(err) != fault.Unavailable {
		t.Fatalf("got %v, want an Unavailable that says record 2 is damaged", err)
	}
	after, err := j.Read(ctx, damaged.Last, 10, 1000)
	must(t, err)
	if len(before) != 1 || string(before[0].Data) != "the first" || len(after) != 1 || string(after[0].Data) != "the last" {
		t.Errorf("around the damage: read %d and %d records, want one each", len(before), len(after))
	}
	if r := stats(t, j).Readers[0]; r.Lag != 2 || r.Bytes == 0 {
		t.Errorf("a reader before the damage lags %d records, want 2", r.Lag)
	}
}

func TestBrokenDiskRefusesAndResumes(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	dir := t.TempDir()
	j := open(t, testConfig(), dir, journal.Hooks{BeforeCommit: func(int) error {
		if broken.Load() {
			return errors.New("input/output error")
		}
		return nil
	}})
	ctx := context.Background()
	_, err := j.Register(ctx, "reader", journal.Begin)
	must(t, err)
	_, err = j.Append(ctx, []byte("before"))
	must(t, err)
	broken.Store(true)
	for range 3 {
		_, err = j.Append(ctx, []byte("never"))
		if f := fault.From(err); f == nil || f.Kind != fault.Unavailable || f.Code != "journal_unavailable" || f.RetryAfter <= 0 {
			t.Fatalf("got %v, want Unavailable journal_unavailable with a time to come back", err)
		}
	}
	if s, err := j.Stats(ctx); err != nil || s.Broken == nil || !strings.Contains(s.Broken.Error(), "input/output") {
		t.Errorf("stats: broken %v, want the cause (%v)", s.Broken, err)
	}
	if err := j.Commit(ctx, "reader", journal.Position{Seq: 1}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("commit: got %v, want Unavailable", err)
	}
	broken.Store(false)
	eventually(t, "appends are taken again", func() bool {
		_, err := j.Append(ctx, []byte("after"))
		return err == nil
	})
	must(t, j.Commit(ctx, "reader", journal.Position{Seq: 1}))
	must(t, j.Close(ctx))
	var got []string
	each(t, open(t, testConfig(), dir, journal.Hooks{}), func(r journal.Record) { got = append(got, string(r.Data)) })
	if strings.Join(got, " ") != "before after" {
		t.Errorf("kept %q, want what was acknowledged", got)
	}
}

func TestFailedSyncRefusesUntilRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, testConfig(), dir, journal.Hooks{Sync: func() error { return errors.New("input/output error") }})
	known := acked{}
	eventually(t, "appends are refused", func() bool {
		data := noise(0)
		seq, err := j.Append(context.Background(), data)
		if err == nil {
			known[seq] = data
		}
		return code(err) == "journal_unavailable"
	})
	known.check(t, j)
	must(t, j.Close(context.Background()))
	known.check(t, open(t, testConfig(), dir, journal.Hooks{}))
}

func TestRemovedFileRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, testConfig(), dir, journal.Hooks{})
	must(t, os.Remove(file(dir)))
	eventually(t, "appends are refused", func() bool {
		_, err := j.Append(context.Background(), nil)
		return code(err) == "journal_unavailable"
	})
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	dir := t.TempDir()
	for range 2 { // a closed journal leaves the registry
		j, err := journal.Open(testConfig(), dir, zap.NewNop(), reg)
		must(t, err)
		ctx := context.Background()
		_, err = j.Register(ctx, "reader", journal.Begin)
		must(t, err)
		_, err = j.Append(ctx, []byte("record"))
		must(t, err)
		families, err := reg.Gather()
		must(t, err)
		names := map[string]bool{}
		for _, f := range families {
			names[f.GetName()] = true
		}
		for _, name := range []string{"append_seconds", "group_records", "written_bytes_total", "records", "bytes", "file_bytes",
			"broken", "reader_lag_records", "reader_lag_bytes", "reader_lag_seconds", "reader_dropped_records_total"} {
			if !names["guidon_journal_"+name] {
				t.Errorf("guidon_journal_%s is missing", name)
			}
		}
		must(t, j.Close(ctx))
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	dir := t.TempDir()
	j := open(t, testConfig(), dir, journal.Hooks{})
	_, err := j.Append(context.Background(), make([]byte, 1<<20))
	must(t, err)
	must(t, j.Close(context.Background()))
	goleak.VerifyNone(t, before)
	entries, err := os.ReadDir(filepath.Dir(file(dir)))
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if strings.Join(names, " ") != "journal.db journal.mark lock" {
		t.Errorf("the directory holds %q, want no write-ahead log", names)
	}
}

package journal_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/journal/format"
	"github.com/guidonhq/guidon/core/sqlitewal"
)

// formerPage is the size of a page in the files of former versions.
const formerPage = 16384

// A journal of a former version opens, keeps its pages, and replays its write-ahead
// log after a crash.
func TestFormerPageSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	known := fillFile(t, dir, 50, 600)
	query(t, file(dir), "PRAGMA journal_mode = DELETE; PRAGMA page_size = 16384; VACUUM; PRAGMA journal_mode = WAL")
	checkPage(t, file(dir), formerPage)

	j := open(t, testConfig(), dir, journal.Hooks{})
	const appends = 20 // fewer than lead to a checkpoint, which starts the log again
	for range appends {
		data := []byte("appended to pages of the former size")
		seq, err := j.Append(t.Context(), data)
		must(t, err)
		known[seq] = data
	}
	crashed := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(crashed, "journal"), 0o700))
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(file(dir) + suffix)
		must(t, err)
		if suffix != "" && len(content) < appends*formerPage {
			t.Fatalf("the write-ahead log has %d bytes, want those of %d appends", len(content), appends)
		}
		must(t, os.WriteFile(file(crashed)+suffix, content, 0o600))
	}
	must(t, j.Close(context.Background()))

	after := open(t, testConfig(), crashed, journal.Hooks{})
	got, damaged := readAround(t, after)
	if lost := known.checkAccount(t, got, damaged); lost > 0 || len(damaged) > 0 {
		t.Errorf("%d records lost in %d ranges", lost, len(damaged))
	}
	must(t, after.Close(context.Background()))
	checkPage(t, file(crashed), formerPage)
	if aside, _ := filepath.Glob(file(crashed) + "*damaged*"); len(aside) > 0 {
		t.Errorf("an intact log was taken for damaged: %q", aside)
	}
}

// A new journal has small pages, because a lone append writes whole ones.
func TestPageSizeOfNewFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fillFile(t, dir, 1, 600)
	checkPage(t, file(dir), 4096)
}

func checkPage(t *testing.T, path string, want int) {
	t.Helper()
	if got, err := sqlitewal.PageSize(path, format.PageBytes); err != nil || got != want {
		t.Errorf("pages of %d bytes, %v, want %d", got, err, want)
	}
}

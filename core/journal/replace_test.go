package journal_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/journal/incident"
)

// leafOrder returns the leaf page with the lowest and the one with the highest
// numbers of records.
func leafOrder(content []byte) (lowest, highest int) {
	low, high := uint64(1<<63), uint64(0)
	for _, p := range leaves(content) {
		c := content[p*page:]
		at := int(binary.BigEndian.Uint16(c[8:]))
		_, n := uvarint(c[at:])
		first, _ := uvarint(c[at+n:])
		if first < low {
			low, lowest = first, p
		}
		if first > high {
			high, highest = first, p
		}
	}
	return lowest, highest
}

// uvarint decodes an integer of the SQLite file format.
func uvarint(b []byte) (v uint64, n int) {
	for n < 8 {
		v = v<<7 | uint64(b[n]&0x7f)
		if n++; b[n-1] < 0x80 {
			return v, n
		}
	}
	return v<<8 | uint64(b[8]), 9
}

// spoil overwrites a page of a file with zeros while the journal is open.
func spoil(t testing.TB, dir string, choose func(content []byte) int) {
	t.Helper()
	content, err := os.ReadFile(file(dir))
	must(t, err)
	f, err := os.OpenFile(file(dir), os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(make([]byte, page), int64(choose(content)*page))
	must(t, errors.Join(err, f.Close()))
}

// The last leaf of the files below is full: leaves does not return one of two rows.
func lastLeaf(content []byte) int  { _, p := leafOrder(content); return p }
func firstLeaf(content []byte) int { p, _ := leafOrder(content); return p }

func TestAMalformedFileIsReplacedWhileRunning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	known := fillFile(t, dir, 400, 440)
	j := open(t, testConfig(), dir, journal.Hooks{})
	ctx := context.Background()
	must(t, j.Commit(ctx, "reader", journal.Position{Seq: 7, Index: 1, Count: 9}))
	id := stats(t, j).ID
	must(t, j.Close(ctx))
	j = open(t, testConfig(), dir, journal.Hooks{})
	spoil(t, dir, lastLeaf)

	var mu sync.Mutex
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			data := noise(1000 + n)[:300]
			seq, err := j.Append(ctx, data)
			if err != nil {
				t.Errorf("append on a malformed file: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if _, used := known[seq]; used || seq <= 400 {
				t.Errorf("the number %d is given again", seq)
			}
			known[seq] = data
		})
	}
	wg.Wait()
	check := func(j journal.Journal) {
		t.Helper()
		got, damaged := readAround(t, j)
		if lost := known.checkAccount(t, got, damaged); lost == 0 || lost > 40 || len(damaged) != 1 {
			t.Errorf("lost %d of 450 records in %d ranges, want those of one page: %v", lost, len(damaged), damaged)
		}
		s := stats(t, j)
		if s.ID != id || s.Last != 450 || s.Broken != nil {
			t.Errorf("got journal %s, last %d, broken %v, want %s, 450, nil", s.ID, s.Last, s.Broken, id)
		}
		if want := (journal.Position{Seq: 7, Index: 1, Count: 9}); len(s.Readers) != 1 || s.Readers[0].Position != want {
			t.Errorf("readers %+v, want one at %+v", s.Readers, want)
		}
		if len(s.Incidents) != 1 || s.Incidents[0].Kind != incident.FileReplaced || !strings.Contains(s.Incidents[0].Text, ".damaged-") {
			t.Errorf("incidents %+v, want the replaced file", s.Incidents)
		}
	}
	check(j)
	kept, err := filepath.Glob(file(dir) + ".damaged-*")
	must(t, err)
	if len(kept) == 0 {
		t.Error("the damaged file is not kept")
	}
	must(t, j.Close(ctx))
	j = open(t, testConfig(), dir, journal.Hooks{})
	check(j)
	acknowledged, err := incident.File{Path: filepath.Join(dir, "journal", incident.FileName)}.Acknowledge()
	must(t, err)
	if s := stats(t, j); len(acknowledged) != 1 || len(s.Incidents) != 0 {
		t.Errorf("acknowledged %d incidents, %d left", len(acknowledged), len(s.Incidents))
	}
}

func TestRetentionReplacesAMalformedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	known := fillFile(t, dir, 400, 500)
	cfg := testConfig()
	j := open(t, cfg, dir, journal.Hooks{})
	ctx := context.Background()
	must(t, j.Commit(ctx, "reader", journal.Position{Seq: 200, Count: 200}))
	must(t, j.Close(ctx))
	cfg.MaxBytes = 1
	j = open(t, cfg, dir, journal.Hooks{})
	spoil(t, dir, firstLeaf)
	eventually(t, "retention removes what the reader has done", func() bool {
		_, err := j.Trim(ctx)
		if err != nil && fault.From(err) == nil {
			t.Fatal(err)
		}
		return stats(t, j).First == 201
	})
	records, err := j.Read(ctx, 200, 1000, 1<<20)
	if err != nil || len(records) != 200 || string(records[0].Data) != string(known[201]) {
		t.Errorf("read %d records behind 200 (%v), want 200", len(records), err)
	}
}

func TestAMalformedFileWithoutSpaceForACopyNamesTheCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fillFile(t, dir, 400, 440)
	cfg := testConfig()
	cfg.MinFreeBytes = 0
	j := open(t, cfg, dir, journal.Hooks{Space: func(string) (int64, int64, error) { return 1000, 1 << 40, nil }})
	spoil(t, dir, lastLeaf)
	_, err := j.Append(context.Background(), []byte("record"))
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fmt.Sprint(err), "guidon journal repair") {
		t.Errorf("append: %v, want unavailable with the command", err)
	}
	if s := stats(t, j); s.Broken == nil {
		t.Error("the journal does not report that it refuses appends")
	}
}

// A copy needs as much space as the file and an eighth of it.
func TestTheSpaceForACopyIsMeasured(t *testing.T) {
	t.Parallel()
	for missing, replaced := range []bool{true, false} {
		t.Run(fmt.Sprintf("%d bytes are missing", missing), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fillFile(t, dir, 400, 440)
			info, err := os.Stat(file(dir))
			must(t, err)
			free := info.Size() + info.Size()/8 - int64(missing)
			j := open(t, testConfig(), dir, journal.Hooks{Space: func(string) (int64, int64, error) { return free, 1 << 40, nil }})
			spoil(t, dir, lastLeaf)
			_, err = j.Append(context.Background(), []byte("record"))
			if s := stats(t, j); (err == nil) != replaced || (len(s.Incidents) == 1) != replaced {
				t.Errorf("append with %d bytes free: %v, %d incidents", free, err, len(s.Incidents))
			}
		})
	}
}

// A copy that cannot take the place of the file replaces nothing: the records stay readable.
func TestAReplacementThatFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	known := fillFile(t, dir, 400, 440)
	j := open(t, testConfig(), dir, journal.Hooks{})
	spoil(t, dir, lastLeaf)
	must(t, os.MkdirAll(filepath.Join(file(dir)+".next", "in the way"), 0o700))
	if _, err := j.Append(context.Background(), []byte("record")); !fault.Is(err, fault.Unavailable) || !strings.Contains(fmt.Sprint(err), "guidon journal repair") {
		t.Errorf("append: %v, want unavailable with the command", err)
	}
	if s := stats(t, j); len(s.Incidents) > 0 {
		t.Errorf("incidents %+v of a file that was not replaced", s.Incidents)
	}
	got, damaged := readAround(t, j)
	if lost := known.checkAccount(t, got, damaged); lost == 0 || lost > 40 {
		t.Errorf("lost %d of 400 records, want those of one page", lost)
	}
}

// A disk that damages the new file, too, must not be filled with copies.
func TestAFileIsNotReplacedAgainAtOnce(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), context.Background()
	known := fillFile(t, dir, 400, 440)
	cfg := testConfig()
	cfg.MaxBytes = 1
	j := open(t, cfg, dir, journal.Hooks{})
	must(t, j.Commit(ctx, "reader", journal.Position{Seq: 200, Count: 200}))
	must(t, j.Close(ctx))
	j = open(t, cfg, dir, journal.Hooks{})
	spoil(t, dir, lastLeaf)
	data := noise(400)[:440]
	seq, err := j.Append(ctx, data)
	must(t, err)
	known[seq] = data

	spoil(t, dir, firstLeaf)
	for range 3 {
		if _, err := j.Trim(ctx); !fault.Is(err, fault.Unavailable) || !strings.Contains(fmt.Sprint(err), "guidon journal repair") {
			t.Fatalf("retention on a second malformed page: %v, want unavailable with the command", err)
		}
	}
	if kept, err := filepath.Glob(file(dir) + ".damaged-*"); err != nil || len(kept) == 0 || len(stats(t, j).Incidents) != 1 {
		t.Errorf("%d files are kept, %d incidents, want those of one replacement (%v)", len(kept), len(stats(t, j).Incidents), err)
	}
	got, damaged := readAround(t, j)
	if lost := known.checkAccount(t, got, damaged); lost == 0 || lost > 80 {
		t.Errorf("lost %d of 401 records, want those of two pages", lost)
	}
}

// A process may end at any moment of a replacement: the next start completes it.
func TestAReplacementIsCompletedAtTheNextStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		moved []string
	}{
		{"nothing is moved", nil},
		{"the log is moved", []string{"-wal"}},
		{"the file is moved", []string{"-wal", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, other := t.TempDir(), t.TempDir()
			known := fillFile(t, dir, 30, 500)
			fillFile(t, other, 10, 500)
			must(t, os.Rename(file(dir), file(dir)+".next"))
			must(t, os.Rename(file(other), file(dir)))
			must(t, os.WriteFile(file(dir)+"-wal", []byte("a log of the damaged file"), 0o600))
			must(t, os.WriteFile(file(dir)+".copy", []byte("an incomplete copy"), 0o600))
			for _, suffix := range c.moved {
				must(t, os.Rename(file(dir)+suffix, file(dir)+".damaged-x"+suffix))
			}
			j := open(t, testConfig(), dir, journal.Hooks{})
			got, damaged := readAround(t, j)
			if lost := known.checkAccount(t, got, damaged); lost != 0 {
				t.Errorf("lost %d records", lost)
			}
			for _, name := range []string{".next", ".copy"} {
				if _, err := os.Stat(file(dir) + name); err == nil {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

// BenchmarkReplaceFile measures how long an append waits for the replacement of a
// file of about 100 MB.
func BenchmarkReplaceFile(b *testing.B) {
	ctx := context.Background()
	for range b.N {
		b.StopTimer()
		dir, cfg := b.TempDir(), testConfig()
		cfg.MaxGroupRecords = 8 // several blocks a page: lastLeaf knows no others
		j := open(b, cfg, dir, journal.Hooks{})
		var wg sync.WaitGroup
		for n := range 64 {
			wg.Go(func() {
				for range 200_000 / 64 {
					_, _ = j.Append(ctx, noise(n)[:500])
				}
			})
		}
		wg.Wait()
		must(b, j.Close(ctx))
		j = open(b, testConfig(), dir, journal.Hooks{})
		spoil(b, dir, lastLeaf)
		b.StartTimer()
		_, err := j.Append(ctx, noise(1))
		must(b, err)
		b.StopTimer()
		if s := stats(b, j); len(s.Incidents) != 1 {
			b.Fatal("the file was not replaced")
		}
	}
}

// A journal that was replaced by an older copy does not give the numbers again that
// the database has processed: readers would skip the new records.
func TestComparedWithANewerDatabaseTheJournalSkipsItsNumbers(t *testing.T) {
	t.Parallel()
	for _, empty := range []bool{false, true} {
		t.Run(fmt.Sprintf("empty %v", empty), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fillFile(t, dir, 20, 100)
			cfg, ctx := testConfig(), context.Background()
			if empty {
				cfg.MaxBytes = 1
			}
			j := open(t, cfg, dir, journal.Hooks{})
			must(t, j.Commit(ctx, "reader", journal.Position{Seq: 20, Count: 20}))
			if _, err := j.Trim(ctx); err != nil {
				t.Fatal(err)
			}
			k := j.(journal.Comparer)
			must(t, k.Compare(ctx, stats(t, j).ID, 20))
			if s := stats(t, j); len(s.Incidents) != 0 {
				t.Fatalf("incidents %+v for a journal that is complete", s.Incidents)
			}
			must(t, k.Compare(ctx, stats(t, j).ID, 33))
			seq, err := j.Append(ctx, []byte("new"))
			if err != nil || seq != 34 {
				t.Errorf("the new record has the number %d (%v), want 34", seq, err)
			}
			s := stats(t, j)
			if len(s.Incidents) != 1 || s.Incidents[0].Kind != incident.RecordsMissing {
				t.Errorf("incidents %+v, want the missing records", s.Incidents)
			}
			got, _ := readAround(t, j)
			if string(got[34]) != "new" {
				t.Error("the new record is not read")
			}
			must(t, j.Close(ctx))
			j = open(t, cfg, dir, journal.Hooks{})
			if s := stats(t, j); s.Last != 34 {
				t.Errorf("the newest record is %d after a restart, want 34", s.Last)
			}
			must(t, j.(journal.Comparer).Compare(ctx, "another journal", 5))
			if s := stats(t, j); len(s.Incidents) != 2 || s.Incidents[1].Kind != incident.JournalReplaced {
				t.Errorf("incidents %+v, want the other journal", s.Incidents)
			}
		})
	}
}

// The numbers that a journal skips stay skipped when it is opened again before the next append.
func TestSkippedNumbersAreDurable(t *testing.T) {
	t.Parallel()
	for _, empty := range []bool{false, true} {
		dir, cfg, ctx := t.TempDir(), testConfig(), context.Background()
		cfg.MaxBytes = 1
		fillFile(t, dir, 20, 100)
		j := open(t, cfg, dir, journal.Hooks{})
		if empty {
			must(t, j.Commit(ctx, "reader", journal.Position{Seq: 20, Count: 20}))
			trim(t, j)
		}
		must(t, j.(journal.Comparer).Compare(ctx, stats(t, j).ID, 33))
		must(t, j.Close(ctx))
		must(t, os.Remove(filepath.Join(dir, "journal", journal.MarkName))) // it names the number, too
		j = open(t, cfg, dir, journal.Hooks{})
		s := stats(t, j)
		if len(s.Incidents) != 1 || empty && s.Last != 33 {
			t.Errorf("empty %v: last %d, incidents %+v, want 33 and one", empty, s.Last, s.Incidents)
		}
		if seq, err := j.Append(ctx, []byte("new")); err != nil || seq != 34 {
			t.Errorf("empty %v: the new record has the number %d (%v), want 34", empty, seq, err)
		}
	}
}

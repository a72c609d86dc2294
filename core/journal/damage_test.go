package journal_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/core/journal/format"
)

// fillFile writes a closed journal with records of about size bytes, one per
// group, and returns what was acknowledged.
func fillFile(t *testing.T, dir string, records, size int) acked {
	t.Helper()
	j := open(t, testConfig(), dir, journal.Hooks{})
	ctx := context.Background()
	_, err := j.Register(ctx, "reader", journal.Begin)
	must(t, err)
	known := acked{}
	for n := range records {
		data := noise(n)[:size]
		seq, err := j.Append(ctx, data)
		must(t, err)
		known[seq] = data
	}
	must(t, j.Close(ctx))
	return known
}

// readAround reads the journal as its readers do: over damaged ranges.
func readAround(t *testing.T, j journal.Journal) (got map[uint64][]byte, damaged []*journal.DamagedError) {
	t.Helper()
	got = map[uint64][]byte{}
	for after := uint64(0); ; {
		records, err := j.Read(context.Background(), after, 1000, 1<<20)
		if d, ok := errors.AsType[*journal.DamagedError](err); ok {
			if d.First != after+1 || d.Last < d.First {
				t.Fatalf("damaged range %d to %d after record %d", d.First, d.Last, after)
			}
			damaged, after = append(damaged, d), d.Last
			continue
		}
		must(t, err)
		if len(records) == 0 {
			return got, damaged
		}
		for _, r := range records {
			if r.Seq <= after {
				t.Fatalf("record %d comes after %d", r.Seq, after)
			}
			after, got[r.Seq] = r.Seq, r.Data
		}
	}
}

// checkAccount checks that each acknowledged record is read unchanged or lies in
// a damaged range.
func (a acked) checkAccount(t *testing.T, got map[uint64][]byte, damaged []*journal.DamagedError) (lost int) {
	t.Helper()
	for seq, data := range a {
		reported := false
		for _, d := range damaged {
			reported = reported || d.First <= seq && seq <= d.Last
		}
		switch read, ok := got[seq]; {
		case ok && string(read) != string(data):
			t.Errorf("record %d was changed", seq)
		case ok == reported:
			t.Errorf("record %d: read %v, reported damaged %v", seq, ok, reported)
		case !ok:
			lost++
		}
	}
	return lost
}

const page = format.PageBytes

// leaves returns the numbers of the leaf pages of a journal's tables, the first
// page excluded.
func leaves(content []byte) (pages []int) {
	for p := 1; p < len(content)/page; p++ {
		c := content[p*page:]
		if c[0] == 0x0d && binary.BigEndian.Uint16(c[3:]) > 2 {
			pages = append(pages, p)
		}
	}
	return pages
}

func TestReadersGoOnBehindAMalformedPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(page []byte)
	}{
		{"a page of zeros", func(p []byte) { clear(p) }},
		{"another page type", func(p []byte) { p[0] = 0x07 }},
		{"a cell pointer out of the page", func(p []byte) { p[8], p[9] = 0xff, 0xff }},
		{"a cell count that is too large", func(p []byte) { p[3] = 0xff }},
		{"noise", func(p []byte) {
			r := rand.New(rand.NewPCG(1, 2))
			for i := range p {
				p[i] = byte(r.Uint32())
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			known := fillFile(t, dir, 400, 500)
			content, err := os.ReadFile(file(dir))
			must(t, err)
			pages := leaves(content)
			p := pages[len(pages)/2]
			c.damage(content[p*page : (p+1)*page])
			must(t, os.WriteFile(file(dir), content, 0o600))

			j := open(t, testConfig(), dir, journal.Hooks{})
			got, damaged := readAround(t, j)
			lost := known.checkAccount(t, got, damaged)
			if lost == 0 || lost > 40 || len(damaged) != 1 {
				t.Errorf("lost %d of 400 records in %d ranges, want those of one page of about 30 in one range", lost, len(damaged))
			}
			if s := stats(t, j); len(s.Damaged) != 1 || s.Damaged[0].First != damaged[0].First || s.Damaged[0].Last != damaged[0].Last {
				t.Errorf("stats list %+v, want the range %d to %d", s.Damaged, damaged[0].First, damaged[0].Last)
			}
		})
	}
}

func TestDamagedRecordKeepsItsBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	known := fillFile(t, dir, 3, 500)
	content, err := os.ReadFile(file(dir))
	must(t, err)
	at := strings.Index(string(content), string(known[2]))
	content[at+100] ^= 1
	must(t, os.WriteFile(file(dir), content, 0o600))
	j := open(t, testConfig(), dir, journal.Hooks{})
	got, damaged := readAround(t, j)
	known.checkAccount(t, got, damaged)
	if len(damaged) != 1 || len(damaged[0].Saved) != 1 || damaged[0].At.IsZero() || damaged[0].Saved[0].Seq != 2 {
		t.Fatalf("got %+v, want one saved record", damaged)
	}
	saved := damaged[0].Saved[0].Data
	saved[100] ^= 1
	if string(saved) != string(known[2]) {
		t.Error("the saved record differs from the stored bytes")
	}
}

// A number in a row is covered by the checksum: a record is never returned under
// another number, and its successors are not skipped.
func TestDamagedNumbersAreFound(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"seq = 100000 + seq", "n = 2", "n = -1", "at = at + 1", "pos = pos + 1", "size = 7", "form = 9", "crc = crc + 1",
		"n = 'x'", "data = zeroblob(10)"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			known := fillFile(t, dir, 30, 100)
			db, err := sql.Open("sqlite", file(dir))
			must(t, err)
			_, err = db.ExecContext(context.Background(), fmt.Sprintf("UPDATE OR IGNORE blocks SET %s WHERE seq = 20", set))
			_ = db.Close()
			if err != nil {
				t.Skip(err) // the column refuses the value
			}
			got, damaged := readAround(t, open(t, testConfig(), dir, journal.Hooks{}))
			if lost := known.checkAccount(t, got, damaged); lost != 1 {
				t.Errorf("lost %d records, want 1 (%+v)", lost, damaged)
			}
		})
	}
}

package journal_test

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/guidonhq/guidon/core/journal"
)

// FuzzBlock reads blocks that a disk made up. Whatever they say, records must
// lie within them; and what was packed comes back as it was.
func FuzzBlock(f *testing.F) {
	for _, records := range [][][]byte{
		{nil},
		{[]byte("one")},
		{[]byte("one"), {}, []byte("three")},
		{bytes.Repeat([]byte(`{"event":"$pageview"}`), 300), []byte("{}")},
	} {
		form, _, stored := journal.Packed(records...)
		f.Add(len(records), form, stored, uint64(0))
		f.Add(len(records), form, stored, uint64(1))
		f.Add(len(records)+1, 1-form, stored, uint64(2))
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	f.Fuzz(func(t *testing.T, n, form int, stored []byte, after uint64) {
		if form == 1 && len(stored) > 3 && stored[3] > 1 {
			return // says that it holds more than 4 MiB: true or not, too slow here
		}
		records, err := journal.Unpacked(n, form, crc32.Checksum(stored, table), stored, after)
		if err != nil {
			return
		}
		if want := max(0, n-int(min(after, 1<<30))); len(records) != want {
			t.Fatalf("%d of %d records after %d", len(records), n, after)
		}
		if after > 0 || n > 1000 {
			return
		}
		data := make([][]byte, n)
		for i, r := range records {
			data[i] = r.Data
		}
		form, sum, again := journal.Packed(data...)
		back, err := journal.Unpacked(n, form, sum, again, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range back {
			if !bytes.Equal(r.Data, data[i]) {
				t.Fatalf("record %d came back as %q, not %q", i, r.Data, data[i])
			}
		}
	})
}

package pglog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
	"time"
)

func encoders(t testing.TB) (out []*encoder) {
	t.Helper()
	for _, c := range compressions {
		e, err := newEncoder(c)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestRowsAreReadBack(t *testing.T) {
	t.Parallel()
	for _, e := range encoders(t) {
		for _, records := range [][][]byte{
			{{}}, {{}, {}, []byte("x")}, {[]byte("short")}, {bytes.Repeat([]byte("again "), 20_000), []byte("end")},
		} {
			content, err := e.row(records)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decodeRow(content, 100, len(records), time.Unix(1, 0))
			if err != nil {
				t.Fatalf("%s: %v", compressions[e.codec], err)
			}
			for i, r := range got {
				if !bytes.Equal(r.Data, records[i]) || r.Seq != uint64(100-len(records)+1+i) || cap(r.Data) != len(r.Data) {
					t.Errorf("%s: record %d is %d with %d bytes", compressions[e.codec], i, r.Seq, len(r.Data))
				}
			}
			for i := range content {
				bad := bytes.Clone(content)
				bad[i] ^= 0x11
				if i > 2000 {
					break
				}
				if _, err := decodeRow(bad, 100, len(records), time.Time{}); i > 0 && !errors.Is(err, errRow) {
					t.Fatalf("%s: byte %d is changed: %v", compressions[e.codec], i, err)
				}
			}
		}
	}
}

// FuzzRow decodes any content with a right checksum. What is decoded has the records that
// the row must have.
func FuzzRow(f *testing.F) {
	for _, e := range encoders(f) {
		content, err := e.row([][]byte{[]byte("first"), {}, bytes.Repeat([]byte("again "), 100)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content, int64(7), 3)
	}
	f.Add([]byte{}, int64(1), 1)
	f.Add([]byte{codecZstd, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x3f, 1}, int64(1), 1)
	f.Fuzz(func(t *testing.T, content []byte, last int64, count int) {
		if len(content) >= rowHeader {
			binary.BigEndian.PutUint32(content[1:], crc32.Checksum(content[rowHeader:], castagnoli))
		}
		records, err := decodeRow(content, last, count, time.Time{})
		if err != nil {
			return
		}
		if len(records) != count || records[0].Seq == 0 || records[count-1].Seq != uint64(last) {
			t.Errorf("%d records of %d, through %d of %d", len(records), count, records[len(records)-1].Seq, last)
		}
	})
}

package transfer

import (
	"bytes"
	"math"
	"testing"
)

func TestFieldsOutOfRange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  kind
		value any
		fails bool
	}{
		{kindInt4, int64(math.MaxInt32), false},
		{kindInt4, int64(math.MaxInt32 + 1), true},
		{kindInt4, int64(math.MinInt32 - 1), true},
		{kindInt8, int64(math.MinInt64), false},
		{kindInt8, "7", true},
		{kindBool, int64(1), false},
		{kindBool, true, false},
		{kindBool, int64(2), true},
		{kindText, int64(1), true},
		{kindText, []byte("text"), false},
		{kindUUID, make([]byte, 16), false},
		{kindUUID, make([]byte, 15), true},
		{kindBytes, "bytes", false},
		{kindFloat, int64(3), false},
		{kindFloat, "3", true},
		{kindInt4, nil, false},
	} {
		if _, _, err := appendField(nil, c.kind, c.value); (err != nil) != c.fails {
			t.Errorf("kind %d, %T %v: %v, want an error: %t", c.kind, c.value, c.value, err, c.fails)
		}
	}
}

// The checksum of a stream does not depend on how it is divided, nor on the order of rows.
func TestChecksumOfParts(t *testing.T) {
	t.Parallel()
	columns := []column{{"a", kindInt8}, {"b", kindText}, {"c", kindText}}
	rows := [][]any{{int64(1), "one", nil}, {int64(2), "", "x\x00"}, {int64(3), "three", "y"}}
	var sums []uint64
	for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}} {
		b := &batch{}
		b.reset()
		for _, n := range order {
			if err := b.add(columns, rows[n]); err != nil {
				t.Fatal(err)
			}
		}
		stream := append(bytes.Clone(b.data), copyTrailer...)
		for size := 1; size <= len(stream); size++ {
			c := &checksummer{}
			for begin := 0; begin < len(stream); begin += size {
				if _, err := c.Write(stream[begin:min(begin+size, len(stream))]); err != nil {
					t.Fatal(err)
				}
			}
			if c.rows != 3 || c.sum != b.sum || !c.ended || b.replaced != 1 {
				t.Fatalf("parts of %d bytes: %d rows, sum %x, want 3 and %x", size, c.rows, c.sum, b.sum)
			}
		}
		sums = append(sums, b.sum)
	}
	if sums[0] != sums[1] {
		t.Errorf("the sums of two orders are %x and %x", sums[0], sums[1])
	}
	if _, err := (&checksummer{}).Write([]byte("ERROR:  no such table")); err == nil {
		t.Error("another stream is accepted")
	}
}

func TestKeysAreRead(t *testing.T) {
	t.Parallel()
	for _, k := range []rowKey{nil, {int64(-5)}, {int64(1), "a, \"b\" \xff\x00"}, {"", int64(math.MaxInt64)}} {
		got, err := decodeKey(k.encode())
		if err != nil || len(got) != len(k) {
			t.Fatalf("%v becomes %v, %v", k, got, err)
		}
		for i := range k {
			if got[i] != k[i] {
				t.Errorf("%v becomes %v", k, got)
			}
		}
	}
}

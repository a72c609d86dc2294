package mark_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/guidonhq/guidon/core/journal/mark"
)

func TestMarkIsReadBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mark")
	if _, found, err := mark.Read(path); found || err != nil {
		t.Fatalf("found %v (%v) without a file", found, err)
	}
	f, err := mark.Open(path, "A")
	if err != nil {
		t.Fatal(err)
	}
	for _, last := range []uint64{0, 7, 1 << 40, 12} {
		if err := f.Write(last, last == 7); err != nil {
			t.Fatal(err)
		}
		if m, found, err := mark.Read(path); err != nil || !found || m != (mark.Mark{ID: "A", Last: last}) {
			t.Fatalf("got %+v %v (%v), want record %d", m, found, err, last)
		}
	}
	if err := f.Close(13); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range content {
		damaged := append([]byte(nil), content...)
		damaged[i] ^= 1
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := mark.Read(path); !errors.Is(err, mark.ErrDamaged) {
			t.Fatalf("byte %d flipped: %v, want ErrDamaged", i, err)
		}
	}
}

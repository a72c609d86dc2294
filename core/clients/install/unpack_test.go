package install

import (
	"os"
	"path/filepath"
	"testing"
)

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		archive, into := filepath.Join(dir, "a.tgz"), filepath.Join(dir, "into")
		if os.WriteFile(archive, data, 0o600) != nil || os.Mkdir(into, 0o700) != nil {
			t.Fatal("the directories cannot be made")
		}
		_, _, _ = unpack(archive, into)
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 2 {
			t.Fatalf("%v: files outside of the directory: %v", err, entries)
		}
	})
}

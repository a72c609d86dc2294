package filewatch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that is written in place is read when nothing has written to it for a while;
// one that takes its name by a rename is read soon.
func TestFileIsReadWhenComplete(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "guidon.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	s := &stability{}
	// after observes the file after d, and again as often as it is asked to, until it
	// is read or limit has passed.
	after := func(limit time.Duration) (took time.Duration, read bool) {
		t.Helper()
		begin := now
		for {
			read, wait := s.observe(now, readState(path))
			if read || wait == 0 || now.Add(wait).Sub(begin) > limit {
				return now.Sub(begin), read
			}
			now = now.Add(wait)
		}
	}
	write("a: 1\n")
	s.accept(readState(path))
	if took, read := after(time.Hour); read || took != 0 {
		t.Error("an unchanged file was read")
	}

	write("a: 2\n")
	if _, read := after(writtenTime - time.Millisecond); read {
		t.Error("half a file was read")
	}
	write("a: 2\nb: 3\n") // the second half, later
	if took, read := after(time.Hour); !read || took < writtenTime {
		t.Errorf("read %v after %v", read, took)
	}

	write("a: [\n")
	if took, read := after(time.Hour); !read || took < invalidTime {
		t.Errorf("text that is not YAML: read %v after %v", read, took)
	}

	write("")
	if took, read := after(time.Hour); read || took != 0 {
		t.Error("an empty file was read")
	}

	if err := os.WriteFile(path+".new", []byte("a: 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if took, read := after(time.Hour); !read || took > writtenTime/2 {
		t.Errorf("a replaced file: read %v after %v", read, took)
	}
}

// A file that a process still writes to is not complete.
func TestFileOpenForWriting(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "guidon.yaml")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("a: 1\n"); err != nil {
		t.Fatal(err)
	}
	if !readState(path).open {
		t.Skip("the file system does not tell whether a file is open")
	}
	now := time.Now()
	s := &stability{}
	s.observe(now, readState(path))
	if read, _ := s.observe(now.Add(invalidTime), readState(path)); read {
		t.Error("the file was read while it was written")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if read, _ := s.observe(now.Add(invalidTime), readState(path)); !read {
		t.Error("the complete file was not read")
	}
}

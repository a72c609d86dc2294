package linefile

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A process that opens the file while another appends to it removes none of its lines.
func TestOpenBesideAppendLosesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lines")
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var others sync.WaitGroup
	stop := make(chan struct{})
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			other, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			_ = other.Close()
		}
	})
	text := bytes.Repeat(append(bytes.Repeat([]byte("x"), 999), '\n'), 2000)
	for n := 1; n <= 50; n++ {
		if err := Append(f, text); err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Size() / int64(len(text)); got != int64(n) || info.Size()%int64(len(text)) != 0 {
			t.Fatalf("%d bytes after %d appends of %d", info.Size(), n, len(text))
		}
	}
	close(stop)
	others.Wait()
}

// A process that is killed in a write while another has the file open leaves a torn
// line, which the other does not continue.
func TestAppendRemovesATornLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lines")
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(path, []byte("a\nto"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Append(f, []byte("torn\n")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "a\ntorn\n" {
		t.Errorf("%q %v", got, err)
	}
}

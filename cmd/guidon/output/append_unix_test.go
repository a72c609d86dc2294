//go:build unix

package output_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/guidonhq/guidon/cmd/guidon/output"
)

func TestAppendKeepsWhatOthersWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	own, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close() }()
	other, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	output.Append(own)
	for _, w := range []struct {
		file *os.File
		text string
	}{{own, "1"}, {other, "2"}, {own, "3"}, {other, "4"}} {
		if _, err := w.file.WriteString(w.text); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "1234" {
		t.Errorf("the file has %q, %v", got, err)
	}
}

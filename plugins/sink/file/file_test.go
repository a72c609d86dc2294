package file_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/plugins/sink/file"
	"github.com/guidonhq/guidon/sdk"
)

// open returns an open sink for the path with further settings.
func open(t *testing.T, path, settings string) *file.Sink {
	t.Helper()
	s, err := try(t, path, settings)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func try(t *testing.T, path, settings string) (*file.Sink, error) {
	t.Helper()
	s := file.New()
	quoted, err := json.Marshal(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := sdk.DecodeConfig([]byte(`{"path": `+string(quoted)+settings+`}`), s.Config()); err != nil {
		t.Fatal(err)
	}
	_, err = s.Open(t.Context(), sdk.OpenRequest{Instance: "test"})
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s, err
}

// batch is n events received at the given time, with numbered uuids.
func batch(first uint64, n int, at time.Time) *sdk.Batch {
	b := &sdk.Batch{ID: "b", FirstSeq: first, LastSeq: first + uint64(n) - 1}
	for i := range n {
		e := sdk.Event{
			UUID: fmt.Sprintf("%08d", first+uint64(i)), ProjectID: 1, Name: "e", DistinctID: "d",
			Timestamp: at, ReceivedAt: at, Properties: []byte(`{"n":9007199254740993}`),
		}
		b.Records = append(b.Records, sdk.Record{JSON: e.AppendJSON(nil), ReceivedAt: at, ProjectID: 1})
	}
	return b
}

func write(t *testing.T, s *file.Sink, b *sdk.Batch) {
	t.Helper()
	r, err := s.Write(t.Context(), b)
	if err != nil || r.Outcome != sdk.Committed || r.CommittedThrough != b.LastSeq {
		t.Fatalf("write: %+v, %v", r, err)
	}
}

// uuids reads the files back; every line must be an event.
func uuids(t *testing.T, paths ...string) []string {
	t.Helper()
	var out []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var e sdk.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%s: %v: %q", path, err, line)
			}
			out = append(out, e.UUID)
		}
	}
	return out
}

// list returns the files beside path, oldest first, path itself last.
func list(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			out = append(out, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(out)
	return append(out, path)
}

func TestEventsAreAppendedToAFileWhoseDirectoryIsMade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "events.ndjson")
	s := open(t, path, "")
	write(t, s, batch(1, 3, time.Now()))
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, open(t, path, `, "fsync": false`), batch(4, 1, time.Now()))
	if got := uuids(t, path); len(got) != 4 || got[3] != "00000004" {
		t.Errorf("uuids %v", got)
	}
	text, _ := os.ReadFile(path)
	if !strings.Contains(string(text), `"n":9007199254740993`) {
		t.Error("digits were lost")
	}
}

func TestATornLastLineIsRemoved(t *testing.T) {
	t.Parallel()
	whole := string(batch(1, 1, time.Now()).NDJSON())
	tests := []struct{ name, left, want string }{
		{"nothing", "", ""},
		{"a whole line", whole, whole},
		{"a torn second line", whole + `{"uuid":"x`, whole},
		{"only a torn line", `{"uuid":"x`, ""},
		{"a torn line longer than a block", whole + strings.Repeat("x", 200<<10), whole},
		{"only a very long torn line", `{"uuid":"` + strings.Repeat("x", 200<<10), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "events")
			if err := os.WriteFile(path, []byte(tt.left), 0o600); err != nil {
				t.Fatal(err)
			}
			s := open(t, path, "")
			if got, _ := os.ReadFile(path); string(got) != tt.want {
				t.Errorf("left %q", got)
			}
			write(t, s, batch(2, 1, time.Now()))
			if got := uuids(t, path); got[len(got)-1] != "00000002" {
				t.Errorf("uuids %v", got)
			}
		})
	}
}

// A file that does not begin with an event keeps its content.
func TestAFileOfSomethingElseIsNotChanged(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"a database":           "SQLite format 3\x00" + strings.Repeat("page\n", 5000) + "end",
		"a key":                "c2VjcmV0",
		"a profile":            "export PATH=/bin\n# the end",
		"an object":            "{\"type\": \"FeatureCollection\"}\n{",
		"numbers":              "1\n2\n3",
		"an event behind text": "text\n" + string(batch(1, 1, time.Now()).NDJSON()),
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := try(t, path, "")
		if e := sdk.AsError(err); err == nil || e.Class != sdk.ClassConfig || !strings.Contains(err.Error(), "does not begin with an event") {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("%s was changed: %d bytes of %d, %v", name, len(got), len(content), err)
		}
	}
}

func TestAFileIsRotatedBySizeAndOldOnesAreRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	size := len(batch(1, 10, time.Now()).NDJSON())
	s := open(t, path, fmt.Sprintf(`, "rotate_bytes": %d, "max_files": 2`, 2*size))
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "events-of-somebody.ndjson"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for n := range uint64(9) {
		write(t, s, batch(10*n+1, 10, time.Now()))
	}
	files := list(t, path)
	if len(files) != 4 || !strings.HasSuffix(files[2], "events-of-somebody.ndjson") {
		t.Fatalf("files %v", files)
	}
	name := regexp.MustCompile(`/events-\d{8}T\d{6}\.\d{9}Z\.ndjson$`)
	if !name.MatchString(files[0]) || !name.MatchString(files[1]) {
		t.Errorf("names %v", files)
	}
	// 9 batches are 5 files; the two oldest are gone.
	got := uuids(t, files[0], files[1], path)
	if len(got) != 50 || got[0] != "00000041" || !slices.IsSorted(got) {
		t.Errorf("%d lines from %s", len(got), got[0])
	}
}

func TestABatchLargerThanAFileIsWrittenWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	s := open(t, path, `, "rotate_bytes": 10`)
	write(t, s, batch(1, 10, time.Now()))
	write(t, s, batch(11, 10, time.Now()))
	if got := uuids(t, list(t, path)...); len(got) != 20 || !slices.IsSorted(got) {
		t.Errorf("uuids %v", got)
	}
}

func TestAFileIsRotatedByAgeAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	s := open(t, path, `, "rotate_age": "1h"`)
	write(t, s, batch(1, 1, time.Now().Add(-2*time.Hour).UTC()))
	write(t, s, batch(2, 1, time.Now().UTC()))
	if n := len(list(t, path)); n != 1 {
		t.Fatalf("%d files before the hour is over", n)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, open(t, path, `, "rotate_age": "1h"`), batch(3, 1, time.Now().UTC()))
	if files := list(t, path); len(files) != 2 || len(uuids(t, files[0])) != 2 || len(uuids(t, path)) != 1 {
		t.Errorf("files %v", files)
	}
}

func TestMovedFileIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(path string) error{
		"removed":                      os.Remove,
		"renamed":                      func(path string) error { return os.Rename(path, path+".1") },
		"replaced":                     func(path string) error { return replace(path) },
		"its directory removed":        func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
		"replaced with a torn line in": func(path string) error { return torn(path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "dir", "events.ndjson")
			s := open(t, path, "")
			write(t, s, batch(1, 1, time.Now()))
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			write(t, s, batch(2, 1, time.Now()))
			if got := uuids(t, path); len(got) != 1 || got[0] != "00000002" {
				t.Errorf("uuids %v", got)
			}
		})
	}
}

func replace(path string) error {
	if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func torn(path string) error {
	if err := os.WriteFile(path+".new", []byte("{"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func TestTwoInstancesNeverShareAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	first := open(t, path, "")
	_, err := try(t, path, "")
	if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassTransient || e.Code != "locked" {
		t.Errorf("error %v", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	open(t, path, "")
}

func TestUnusablePathIsAConfigError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	pipe := filepath.Join(dir, "pipe")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a directory": dir, "through a file": filepath.Join(plain, "events"), "a pipe": pipe, "not a name": "a\x00b",
	} {
		_, err := try(t, path, "")
		if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassConfig || e.Pointer != "/path" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFullDiskLosesNothingAndTearsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.ndjson")
	s := open(t, path, "")
	write(t, s, batch(1, 10, time.Now()))
	size := fileSize(t, path)
	limitFileSize(t, uint64(size)+100)
	_, err := s.Write(t.Context(), batch(11, 10, time.Now()))
	limitFileSize(t, 1<<40)
	if e := sdk.AsError(err); e == nil || e.Class != sdk.ClassTransient {
		t.Fatalf("error %v", err)
	}
	if got := fileSize(t, path); got != size {
		t.Errorf("%d bytes are left of %d", got, size)
	}
	write(t, s, batch(11, 10, time.Now()))
	if got := uuids(t, path); len(got) != 20 {
		t.Errorf("%d lines", len(got))
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// limitFileSize makes writes beyond n bytes fail in the middle, as on a disk
// that is full.
func limitFileSize(t *testing.T, n uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = min(n, limit.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
}

func TestCheckLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.ndjson")
	s := open(t, path, "")
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files := list(t, path); len(files) != 1 {
		t.Errorf("files %v", files)
	}
}

// The file holds data of people: users other than the owner and the group cannot read
// it, also after a rotation.
func TestModes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "events")
	s := open(t, filepath.Join(dir, "e.ndjson"), `, "rotate_bytes": 300`)
	for n := range 3 {
		write(t, s, batch(uint64(n*2+1), 2, time.Now()))
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&^0o750 != 0 {
		t.Errorf("directory: %v %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 2 {
		t.Fatalf("%d files, want rotated ones: %v", len(entries), err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm()&^0o640 != 0 {
			t.Errorf("%s: %v %v", e.Name(), info.Mode(), err)
		}
	}
}

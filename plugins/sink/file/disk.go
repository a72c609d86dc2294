package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// stamp is the time in a rotated file's name. It sorts by time.
const stamp = "20060102T150405.000000000Z"

// wholeLines returns the length of f up to and including its last line feed.
func wholeLines(f io.ReaderAt, size int64) (int64, error) {
	block := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(block)))
		part := block[:end-start]
		if _, err := f.ReadAt(part, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("look for the last line: %w", err)
		}
		if at := bytes.LastIndexByte(part, '\n'); at >= 0 {
			return start + int64(at) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// eventStart is how each line begins (sdk.Event.AppendJSON).
const eventStart = `{"uuid":"`

// maxLine is how much of the first line is read: more than the largest event.
const maxLine = 64 << 20

// holdsEvents reports whether the file, of which whole bytes are complete lines, begins with
// an event. An empty file does, and one that ends within its first event.
func holdsEvents(f io.ReaderAt, whole, size int64) bool {
	if whole == 0 {
		start := make([]byte, min(size, int64(len(eventStart))))
		_, err := f.ReadAt(start, 0)
		return (err == nil || errors.Is(err, io.EOF)) && strings.HasPrefix(eventStart, string(start))
	}
	var event struct{ UUID, Event *string }
	err := json.NewDecoder(io.NewSectionReader(f, 0, min(whole, maxLine))).Decode(&event)
	return err == nil && event.UUID != nil && event.Event != nil
}

// birth is when the file was begun: the time of its first event would be
// better, but only the file system's is cheap. For an empty file it is now.
func birth(f *os.File, info fs.FileInfo, now time.Time) time.Time {
	if info.Size() == 0 {
		return now
	}
	line := make([]byte, 64<<10)
	n, _ := f.ReadAt(line, 0)
	if at, ok := receivedAt(line[:n]); ok {
		return at
	}
	return info.ModTime()
}

// receivedAt finds the time of receipt in the start of a line of ours.
func receivedAt(line []byte) (time.Time, bool) {
	_, rest, found := bytes.Cut(line, []byte(`"received_at":"`))
	if !found {
		return time.Time{}, false
	}
	text, _, found := bytes.Cut(rest, []byte(`"`))
	if !found {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(text))
	return at, err == nil
}

// rotate renames the file to one with the time in its name.
func (s *Sink) rotate() error {
	dir, base := filepath.Split(s.cfg.Path)
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	to := filepath.Join(dir, stem+"-"+s.now().UTC().Format(stamp)+ext)
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("rotate: %s is there already", to)
	}
	if err := os.Rename(s.cfg.Path, to); err != nil {
		return fmt.Errorf("rotate: %w", err)
	}
	return nil
}

// prune removes the oldest rotated files above the limit.
func (s *Sink) prune() error {
	if s.cfg.MaxFiles == 0 {
		return nil
	}
	dir, base := filepath.Split(s.cfg.Path)
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	entries, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		return fmt.Errorf("list rotated files: %w", err)
	}
	var rotated []string
	for _, e := range entries {
		when, ours := strings.CutPrefix(strings.TrimSuffix(e.Name(), ext), stem+"-")
		if _, err := time.Parse(stamp, when); ours && err == nil && strings.HasSuffix(e.Name(), ext) {
			rotated = append(rotated, e.Name())
		}
	}
	slices.Sort(rotated)
	for len(rotated) > s.cfg.MaxFiles {
		if err := os.Remove(filepath.Join(dir, rotated[0])); err != nil {
			return fmt.Errorf("remove an old file: %w", err)
		}
		rotated = rotated[1:]
	}
	return nil
}

// lock takes the file for this process; the system gives it back at our end,
// however that comes.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// syncDir makes a new name in the directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// badPath recognises what only another path can help: one that leads through a
// file, names a directory, is no path at all, or lies where nothing is written.
func badPath(err error) bool {
	for _, no := range []error{
		fs.ErrPermission, syscall.ENOTDIR, syscall.EISDIR, syscall.EINVAL, syscall.ENAMETOOLONG, syscall.EROFS,
	} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

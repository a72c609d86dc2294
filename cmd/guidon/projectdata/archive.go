package projectdata

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/gzip"
)

// archiveFormat is the version of the layout of a directory with an export.
const archiveFormat = 1

const (
	manifestName    = "manifest.json"
	definitionsName = "definitions.yaml"
	partialSuffix   = ".partial"
)

// The kinds of lines.
const (
	kindEvents  = "events"
	kindPersons = "persons"
)

// part is a complete file of an export.
type part struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Lines  int    `json:"lines"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// progress is how far an export of a kind has come.
type progress struct {
	Cursor string `json:"cursor,omitempty"`
	Lines  int64  `json:"lines"`
	Done   bool   `json:"done"`
}

// manifest describes the directory. It is written after each part, so that it never
// names a file that is not complete.
type manifest struct {
	Format    int                  `json:"format"`
	ID        string               `json:"id"`
	Server    string               `json:"server"`
	Project   string               `json:"project"`
	StartedAt time.Time            `json:"started_at"`
	Since     string               `json:"since,omitempty"`
	Until     string               `json:"until,omitempty"`
	Event     string               `json:"event,omitempty"`
	Through   string               `json:"through,omitempty"`
	Progress  map[string]*progress `json:"progress"`
	Parts     []part               `json:"parts"`
}

// readManifest returns the manifest of a directory, nil without one.
func readManifest(dir string) (*manifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := new(manifest)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	if m.Format != archiveFormat {
		return nil, fmt.Errorf("%s has the format %d; this program reads %d", manifestName, m.Format, archiveFormat)
	}
	if m.Progress == nil {
		m.Progress = map[string]*progress{}
	}
	return m, nil
}

// hasEvents reports whether the export of events has begun.
func (m *manifest) hasEvents() bool {
	at := m.Progress[kindEvents]
	return at != nil && (at.Done || at.Lines > 0 || at.Cursor != "")
}

func (m *manifest) write(dir string) error { return writeJSON(filepath.Join(dir, manifestName), m) }

// writeJSON replaces a file with the JSON of v, durably.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path+partialSuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+partialSuffix, path)
}

// partWriter writes a part. It appears under its name when it is complete.
type partWriter struct {
	path  string
	file  *os.File
	sum   hash.Hash
	gzip  *gzip.Writer
	lines int
	raw   int
}

func createPart(dir, name string) (*partWriter, error) {
	w := &partWriter{path: filepath.Join(dir, name), sum: sha256.New()}
	var err error
	if w.file, err = os.OpenFile(w.path+partialSuffix, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
		return nil, err
	}
	w.gzip = gzip.NewWriter(io.MultiWriter(w.file, w.sum))
	return w, nil
}

// finish closes the part and returns its description.
func (w *partWriter) finish(kind string) (part, error) {
	size, err := int64(0), w.gzip.Close()
	if info, failure := w.file.Stat(); failure == nil {
		size = info.Size()
	}
	if err = errors.Join(err, w.file.Sync(), w.file.Close()); err != nil {
		return part{}, err
	}
	p := part{Name: filepath.Base(w.path), Kind: kind, Lines: w.lines, Bytes: size, SHA256: hex.EncodeToString(w.sum.Sum(nil))}
	return p, os.Rename(w.path+partialSuffix, w.path)
}

func (w *partWriter) discard() {
	_ = w.file.Close()
	_ = os.Remove(w.path + partialSuffix)
}

// maxLine is the longest line that is read.
const maxLine = 64 << 20

// readPart checks the checksum of a part and calls fn for each line after the first
// skip ones. fn must not keep the line.
func readPart(dir string, p *part, skip int, fn func(line []byte) error) error {
	if p.Name != filepath.Base(p.Name) {
		return fmt.Errorf("%s: %q is no name of a file", manifestName, p.Name)
	}
	f, err := os.Open(filepath.Join(dir, p.Name))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != p.SHA256 {
		return fmt.Errorf("%s has changed: its SHA-256 is %s, the manifest has %s", p.Name, got, p.SHA256)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for n := 0; lines.Scan(); n++ {
		if n < skip {
			continue
		}
		if err := fn(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

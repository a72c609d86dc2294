// Package scripts reads the installed versions of the browser library.
//
// The directory of a Library has one directory for each version:
//
//	posthog-js/1.449.2/dist/array.js
//
// which is the layout of the npm package below a directory with its version. Only
// files in dist whose name ends in .js are read, through os.Root, so that neither
// a name from a URL nor a link in the package leads out of it. Versions may be
// added and removed while a server runs: the list is read again after a few
// seconds. The files of a version do not change; they are kept in memory, with a
// gzip of each, within a bound.
package scripts

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Package is the name of the npm package, and of the directory of its versions.
const Package = "posthog-js"

// Main is the script that pages load first.
const Main = "array.js"

// ContentType is the type of a script.
const ContentType = "application/javascript; charset=utf-8"

const (
	maxFileBytes  = 8 << 20
	maxCacheBytes = 64 << 20
	rereadAfter   = 5 * time.Second
)

// scriptName has no separator of paths and no leading dot.
var scriptName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,98}\.js$`)

// File is a script. Its slices are shared: do not change them.
type File struct {
	Content  []byte
	Gzip     []byte // empty if it would not be smaller
	ETag     string // of Content
	GzipETag string // of Gzip
}

func (f *File) size() int { return len(f.Content) + len(f.Gzip) }

// Library holds the installed versions of a directory. It is safe for concurrent
// use.
type Library struct {
	dir string

	mu       sync.Mutex
	versions []string // newest first
	readAt   time.Time
	files    map[string]*File // by version/name
	cached   int              // bytes of files
}

// NewLibrary returns the versions in dir, which need not exist.
func NewLibrary(dir string) *Library {
	return &Library{dir: filepath.Join(dir, Package), files: map[string]*File{}}
}

// Versions returns the installed versions, newest first. The list is up to five
// seconds old.
func (l *Library) Versions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.readAt) > rereadAfter {
		l.versions, l.readAt = installed(l.dir), time.Now()
	}
	return l.versions
}

// Exact returns the version if it is installed.
func (l *Library) Exact(version string) (string, bool) {
	versions := l.Versions()
	if i := slices.Index(versions, version); i >= 0 {
		return versions[i], true
	}
	return "", false
}

// Newest returns the newest version with the prefix, such as 1 or 1.449, or the
// newest of all for an empty one. A pre-release counts only without another one.
func (l *Library) Newest(prefix string) (string, bool) { return newestOf(l.Versions(), prefix) }

// File returns a script of a version that Exact or Newest has returned. It fails
// with an error of IsNotFound for a name that the version does not have.
func (l *Library) File(version, name string) (*File, error) {
	if !scriptName.MatchString(name) {
		return nil, fs.ErrNotExist
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := version + "/" + name
	if f := l.files[key]; f != nil {
		return f, nil
	}
	f, err := readScript(filepath.Join(l.dir, version), name)
	if err != nil {
		return nil, err
	}
	if l.cached += f.size(); l.cached > maxCacheBytes {
		clear(l.files)
		l.cached = f.size()
	}
	l.files[key] = f
	return f, nil
}

// IsNotFound reports whether an error of File means that there is no such script.
func IsNotFound(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// readScript reads a script below the directory of a version.
func readScript(dir, name string) (*File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the library: %w", err)
	}
	defer func() { _ = root.Close() }()
	in, err := root.Open("dist/" + name)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, errors.Join(fs.ErrNotExist, err) // also a link that leads out of the directory
	}
	if err != nil {
		return nil, fmt.Errorf("open the script: %w", err)
	}
	defer func() { _ = in.Close() }()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxFileBytes {
		return nil, errors.Join(fs.ErrNotExist, err)
	}
	content, err := io.ReadAll(io.LimitReader(in, maxFileBytes))
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	return newFile(content), nil
}

func newFile(content []byte) *File {
	sum := sha256.Sum256(content)
	tag := hex.EncodeToString(sum[:12])
	f := &File{Content: content, ETag: `"` + tag + `"`, GzipETag: `"` + tag + `-gzip"`}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // fails only for a wrong level
	_, err := w.Write(content)
	if err = errors.Join(err, w.Close()); err == nil && b.Len() < len(content) {
		f.Gzip = b.Bytes()
	}
	return f
}

package process

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ErrUntrusted is wrapped by every error that refuses an executable or a process
// for lack of trust.
var ErrUntrusted = errors.New("not trusted")

// VerifiedCopies keeps checked copies of third-party executables, named by their
// checksum. The host executes only copies: the configured file may change between
// check and start, and a copy can only be changed by a user who can change the
// server itself. Its methods are safe for concurrent use.
type VerifiedCopies struct {
	dir    string
	devDir string // copies without a configured checksum

	mu       sync.Mutex
	verified map[string]bool // digests of copies checked by this server process
	files    map[string]fileDigest
}

// copyMode is the mode of a copy. Only the server can reach its directory; a process of
// another user inherits the open file.
const copyMode = 0o555

// fileDigest is the digest of a configured file when it was last read.
type fileDigest struct {
	size     int64
	modified time.Time
	digest   string
}

// OtherFile returns the SHA-256 of the file at path if it is not digest, and "" if it is
// or cannot be read. It reads the file only if its size or time has changed.
func (c *VerifiedCopies) OtherFile(path, digest string) string {
	info, err := os.Stat(path)
	want := strings.ToLower(strings.TrimSpace(digest))
	if err != nil || !info.Mode().IsRegular() || want == "" {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.files[path]
	if known.digest == "" || known.size != info.Size() || !known.modified.Equal(info.ModTime()) {
		got, err := digestOf(path)
		if err != nil {
			return ""
		}
		known = fileDigest{info.Size(), info.ModTime(), got}
		c.files[path] = known
	}
	if known.digest == want {
		return ""
	}
	return known.digest
}

// NewVerifiedCopies returns the copies below dataDir.
func NewVerifiedCopies(dataDir string) *VerifiedCopies {
	return &VerifiedCopies{dir: filepath.Join(dataDir, "plugins", "sha256"), devDir: filepath.Join(dataDir, "plugins", "dev"), verified: map[string]bool{}, files: map[string]fileDigest{}}
}

// Executable returns the path of the copy of the file at path, whose SHA-256 must
// be digest. Otherwise the error wraps ErrUntrusted.
func (c *VerifiedCopies) Executable(path, digest string) (string, error) {
	want, err := checkDigest(path, digest)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ensureCopy(c.dir, path, want)
}

// checkDigest returns the configured digest of the file at path in lower case.
func checkDigest(path, digest string) (string, error) {
	want := strings.ToLower(strings.TrimSpace(digest))
	if want == "" {
		return "", fmt.Errorf("%w: sha256 is missing; sha256sum %s prints it", ErrUntrusted, path)
	}
	if raw, err := hex.DecodeString(want); err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("%w: sha256 must be 64 hexadecimal digits", ErrUntrusted)
	}
	return want, nil
}

// Locate returns the path that Executable would return, or DevCopy for dev, with the
// same errors. It copies nothing.
func (c *VerifiedCopies) Locate(path, digest string, dev bool) (string, error) {
	if dev {
		got, err := digestOf(path)
		return filepath.Join(c.devDir, got), err
	}
	want, err := checkDigest(path, digest)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(c.dir, want)
	if got, err := digestOf(copied); err == nil && got == want {
		return copied, nil
	}
	got, err := digestOf(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrUntrusted, err)
	case got != want:
		return "", otherDigest(path, got, want)
	}
	return copied, nil
}

func otherDigest(path, got, want string) error {
	return fmt.Errorf("%w: the checksum of %s is %s, the config says %s", ErrUntrusted, path, got, want)
}

// DevCopy returns the path of a copy of the current file without a check. It is for
// development only. It removes older copies, which running processes survive.
func (c *VerifiedCopies) DevCopy(path string) (string, error) {
	digest, err := digestOf(path)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := os.Stat(filepath.Join(c.devDir, digest)); err != nil {
		_ = os.RemoveAll(c.devDir)
		delete(c.verified, digest)
	}
	return c.ensureCopy(c.devDir, path, digest)
}

// ensureCopy returns the copy of the file with digest want in dir and makes it if
// needed. The caller holds the lock.
func (c *VerifiedCopies) ensureCopy(dir, path, want string) (string, error) {
	copied := filepath.Join(dir, want)
	if c.verified[want] {
		if _, err := os.Stat(copied); err == nil {
			return copied, nil
		}
	}
	if got, err := digestOf(copied); err != nil || got != want {
		if err := c.copy(path, copied, want); err != nil {
			return "", err
		}
	}
	if err := os.Chmod(copied, copyMode); err != nil { // an earlier version made them 0500
		return "", fmt.Errorf("allow the execution of %s: %w", copied, err)
	}
	c.verified[want] = true
	return copied, nil
}

// copy copies the file. It removes the copy when its digest is not want.
func (c *VerifiedCopies) copy(from, to, want string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("make the directory for verified plugins: %w", err)
	}
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.CreateTemp(filepath.Dir(to), ".copy-")
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	defer func() { _ = os.Remove(out.Name()) }()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	if err = errors.Join(err, out.Chmod(copyMode), out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return otherDigest(from, got, want)
	}
	if err := os.Rename(out.Name(), to); err != nil {
		return fmt.Errorf("keep the copy of %s: %w", from, err)
	}
	return nil
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

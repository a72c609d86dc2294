package host

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
)

// errUntrusted is wrapped by every refusal to run an executable.
var errUntrusted = errors.New("not trusted")

// trustStore keeps verified copies of third parties' executables, named by
// their checksum. Only a copy is ever executed: the file the operator named may
// change between the check and the start, the copy cannot without a user who
// could as well change the server.
type trustStore struct {
	dir    string
	devDir string // of copies that nobody vouches for

	mu       sync.Mutex
	verified map[string]bool // digests of copies checked by this process
}

func newTrustStore(dataDir string) *trustStore {
	return &trustStore{dir: filepath.Join(dataDir, "plugins", "sha256"), devDir: filepath.Join(dataDir, "plugins", "dev"), verified: map[string]bool{}}
}

// executable returns the path of the verified copy of the file at path, whose
// checksum must be digest.
func (t *trustStore) executable(path, digest string) (string, error) {
	want := strings.ToLower(strings.TrimSpace(digest))
	if want == "" {
		return "", fmt.Errorf("%w: sha256 is missing; sha256sum %s prints it", errUntrusted, path)
	}
	if raw, err := hex.DecodeString(want); err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("%w: sha256 must be 64 hexadecimal digits", errUntrusted)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keep(t.dir, path, want)
}

// whatever returns the path of a copy of the file as it is now, whoever made it.
// It is for development only. Older copies are dropped; what runs is not
// disturbed by that.
func (t *trustStore) whatever(path string) (string, error) {
	digest, err := digestOf(path)
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := os.Stat(filepath.Join(t.devDir, digest)); err != nil {
		_ = os.RemoveAll(t.devDir)
		delete(t.verified, digest)
	}
	return t.keep(t.devDir, path, digest)
}

// keep returns the copy in dir of the file with that digest, made when there is
// none. The lock is held.
func (t *trustStore) keep(dir, path, want string) (string, error) {
	copied := filepath.Join(dir, want)
	if t.verified[want] {
		if _, err := os.Stat(copied); err == nil {
			return copied, nil
		}
	}
	if got, err := digestOf(copied); err != nil || got != want {
		if err := t.copy(path, copied, want); err != nil {
			return "", err
		}
	}
	t.verified[want] = true
	return copied, nil
}

// copy copies the file and keeps the copy when its bytes have the digest.
func (t *trustStore) copy(from, to, want string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("make the directory for verified plugins: %w", err)
	}
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("%w: %w", errUntrusted, err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.CreateTemp(filepath.Dir(to), ".copy-")
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	defer func() { _ = os.Remove(out.Name()) }()
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	if err = errors.Join(err, out.Chmod(0o500), out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("%w: the checksum of %s is %s, the config says %s", errUntrusted, from, got, want)
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

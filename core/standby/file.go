package standby

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The file is one line of JSON, the header, followed by the content as JSON.
const (
	format        = "guidon standby snapshot"
	formatVersion = 1
	// maxClockStep is how far the clock may have gone back since a snapshot.
	maxClockStep = 5 * time.Minute
)

type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Bytes   int    `json:"bytes"`
	SHA256  string `json:"sha256"` // of the content
}

func checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// writeFile replaces the snapshot at path: it writes and syncs a file beside it
// and renames that. A crash at any moment leaves the old or the new snapshot.
func writeFile(path string, c *content) (err error) {
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode snapshot: %w", err)
	}
	head, err := json.Marshal(header{format, formatVersion, len(body), checksum(body)})
	if err != nil {
		return fmt.Errorf("encode snapshot: %w", err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	temporary := path + ".new"
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	_, err = f.Write(append(append(head, '\n'), body...))
	err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readFile reads the snapshot at path. Its errors are sentences for the log.
func readFile(path string, now time.Time, maxAge time.Duration) (*content, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	line, body, _ := bytes.Cut(raw, []byte("\n"))
	var h header
	if err := json.Unmarshal(line, &h); err != nil || h.Format != format {
		return nil, errors.New("the file is not a snapshot of guidon")
	}
	if h.Version != formatVersion {
		return nil, fmt.Errorf("the snapshot has version %d, this binary reads version %d", h.Version, formatVersion)
	}
	if len(body) != h.Bytes || checksum(body) != h.SHA256 {
		return nil, errors.New("the checksum of the snapshot does not fit its content: the file is damaged")
	}
	c := &content{}
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf("the content of the snapshot is unreadable: %w", err)
	}
	switch age := now.Sub(c.TakenAt); {
	case age > maxAge:
		return nil, fmt.Errorf("the snapshot is %s old, more than standby.max_age (%s)", age.Round(time.Second), maxAge)
	case age < -maxClockStep:
		return nil, fmt.Errorf("the snapshot is from the future (%s): check the clock", c.TakenAt.Format(time.RFC3339))
	}
	return c, nil
}

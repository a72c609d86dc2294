// Package place keeps backups: in a directory of a file system, or below a prefix of
// an S3 bucket.
//
// A backup appears under its name when it is complete and durable. A process that is
// killed before leaves no file of that name: in a directory a hidden file with the
// suffix .guidon-partial, and in a bucket an unfinished upload. Clean removes both: the file
// when no process holds its lock, the upload when it is older than a day.
package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// File is a backup that is being written. Exactly one of Commit and Abort ends it.
type File interface {
	io.Writer
	// Commit makes the file durable and gives it its name, in the place of a file of
	// the same name.
	Commit(ctx context.Context) error
	// Abort removes what was written.
	Abort()
}

// Entry is a backup.
type Entry struct {
	Name  string
	Bytes int64
	At    time.Time // when it was written
}

// Place keeps files by name. Its methods may be called concurrently.
type Place interface {
	// Create begins a file of about estimate bytes. The end of ctx ends the writing.
	Create(ctx context.Context, name string, estimate int64) (File, error)
	// Open returns the content of a file. The error of a missing one satisfies
	// errors.Is(err, fs.ErrNotExist).
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the complete files.
	List(ctx context.Context) ([]Entry, error)
	// Remove removes a file.
	Remove(ctx context.Context, name string) error
	// Path returns the name of a file for people: a path or a URL.
	Path(name string) string
	// Clean removes what writers left that were killed.
	Clean(ctx context.Context) error
}

// S3 names a store that speaks S3. The bucket is part of the target.
type S3 struct {
	// Endpoint is the URL of the store; empty: Amazon's.
	Endpoint string `koanf:"endpoint"`
	// Region of the bucket; empty: the store is asked.
	Region string `koanf:"region"`
	// AccessKey and SecretKey are empty for the keys in the environment
	// (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or those of the machine.
	AccessKey string `koanf:"access_key"`
	SecretKey string `koanf:"secret_key"`
	// PathStyle puts the bucket into the path instead of the host name.
	PathStyle bool `koanf:"path_style"`
}

const s3Scheme = "s3://"

// Extension ends the names of backups.
const Extension = ".guidon-backup"

// GeneratedName is the name of a backup in a directory.
func GeneratedName(at time.Time) string {
	return "guidon-" + at.UTC().Format("20060102T150405Z") + Extension
}

// IsGenerated reports whether a name is one of GeneratedName, and returns its time.
func IsGenerated(name string) (at time.Time, ok bool) {
	middle, ok := strings.CutPrefix(name, "guidon-")
	if middle, ok = cutSuffix(middle, ok); !ok {
		return at, false
	}
	at, err := time.Parse("20060102T150405Z", middle)
	return at, err == nil
}

func cutSuffix(s string, ok bool) (string, bool) {
	if !ok {
		return s, false
	}
	return strings.CutSuffix(s, Extension)
}

// Parse returns the place that a target names, and the name of the file in it. The
// target is the path of a file, of a directory that exists or ends with a slash, or
// the same with s3://BUCKET/ in front. The name is empty for a directory.
func Parse(target string, c S3) (Place, string, error) {
	if target == "" {
		return nil, "", errors.New("the target of the backup is empty: name a file, a directory or s3://bucket/prefix/")
	}
	if rest, ok := strings.CutPrefix(target, s3Scheme); ok {
		bucket, key, _ := strings.Cut(rest, "/")
		prefix, name := "", key
		if i := strings.LastIndexByte(key, '/'); i >= 0 {
			prefix, name = key[:i+1], key[i+1:]
		}
		p, err := openS3(c, bucket, prefix)
		return p, name, err
	}
	if info, err := os.Stat(target); err == nil && info.IsDir() || strings.HasSuffix(target, "/") {
		dir, err := filepath.Abs(target)
		return directory(dir), "", err
	}
	path, err := filepath.Abs(target)
	return directory(filepath.Dir(path)), filepath.Base(path), err
}

// Validate reports a target that cannot be used as a directory of backups.
func Validate(target string, c S3) error {
	if rest, ok := strings.CutPrefix(target, s3Scheme); ok {
		bucket, _, _ := strings.Cut(rest, "/")
		_, err := openS3(c, bucket, "")
		return err
	}
	if strings.Contains(target, "://") {
		return fmt.Errorf("%q is neither a path nor s3://bucket/prefix/", target)
	}
	return nil
}

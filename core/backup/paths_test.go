package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/guidonhq/guidon/core/backup"
	"github.com/guidonhq/guidon/core/backup/archive"
	"github.com/guidonhq/guidon/core/backup/place"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/journal"
)

// A backup in a bucket restores as one in a directory.
func TestBackupInABucket(t *testing.T) {
	t.Parallel()
	backend := s3mem.New()
	must(t, backend.CreateBucket("backups"))
	srv := httptest.NewServer(gofakes3.New(backend).Server())
	defer srv.Close()
	key, err := age.GenerateX25519Identity()
	must(t, err)
	i := open(t, "", t.TempDir())
	fill(t, i)
	c := backup.DefaultConfig()
	c.Every, c.To, c.Recipients = time.Hour, "s3://backups/eu", []string{key.Recipient().String()}
	c.S3 = place.S3{Endpoint: srv.URL, Region: "us-east-1", AccessKey: "me", SecretKey: "hush", PathStyle: true}
	must(t, c.Validate())
	m, err := backup.NewMaker(c, i.source())
	must(t, err)
	made, err := m.Make(t.Context())
	must(t, err)
	list, err := m.List(t.Context())
	must(t, err)
	if len(list) != 1 || list[0].Name != made.Name || list[0].Bytes != made.Bytes || !list[0].At.Equal(made.At) {
		t.Errorf("%+v, made %+v", list, made)
	}
	p, name, err := place.Parse("s3://backups/eu/"+made.Name, c.S3)
	must(t, err)
	dir := t.TempDir()
	if _, err := backup.Restore(t.Context(), target("", dir), p, name, backup.RestoreOptions{}); !errors.Is(err, archive.ErrEncrypted) {
		t.Errorf("without the key: %v", err)
	}
	if _, err := backup.Restore(t.Context(), target("", dir), p, "absent", backup.RestoreOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing backup: %v", err)
	}
	_, err = backup.Restore(t.Context(), target("", dir), p, name, backup.RestoreOptions{Identities: []age.Identity{key}})
	must(t, err)
	want, _, _ := i.processed(t)
	if rows, _, _ := open(t, "", dir).processed(t); rows != want || rows == 0 {
		t.Errorf("%d rows, want %d", rows, want)
	}
	must(t, m.Remove(t.Context(), made.Name))
	must(t, m.Clean(t.Context()))
	if list, err := m.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("%v %v", list, err)
	}
	srv.Close()
	if _, err := m.Make(t.Context()); err == nil || !strings.Contains(err.Error(), "s3://backups/eu/guidon-") {
		t.Errorf("a store that is away: %v", err)
	}
}

// A backup of an older schema restores, and the next start migrates it.
func TestRestoreOlderSchema(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url func() string) {
		i := open(t, url(), t.TempDir())
		fill(t, i)
		must(t, i.db.Revert(t.Context(), 2))
		p, name := local(t, filepath.Join(t.TempDir(), "old"))
		made, err := backup.Create(t.Context(), i.source(), p, name, backup.Options{})
		must(t, err)
		empty, dir := emptyLike(t, i.url), t.TempDir()
		_, err = backup.Restore(t.Context(), target(empty, dir), p, name, backup.RestoreOptions{})
		must(t, err)
		var older *db.OlderSchemaError
		if d, err := db.OpenExisting(t.Context(), db.Config{URL: empty}, dir); !errors.As(err, &older) {
			t.Errorf("the restored schema is not older: %v", err)
			_ = d.Close()
		}
		r := open(t, empty, dir) // migrates
		rows, last, cursor := r.processed(t)
		if rows == 0 || rows != last || cursor != last {
			t.Errorf("%d rows, the last is %d, the cursor %d", rows, last, cursor)
		}
		var steps int
		must(t, r.db.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*) FROM schema_migrations").Scan(&steps))
		if steps != len(made.Manifest.Steps)+2 {
			t.Errorf("%d steps, the backup has %d", steps, len(made.Manifest.Steps))
		}
	})
}

// A damaged backup changes nothing in a database that --force would replace.
func TestDamagedBackupKeepsTheTarget(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url func() string) {
		i := open(t, url(), t.TempDir())
		fill(t, i)
		must(t, i.journal.Close(t.Context()))
		dir := t.TempDir()
		p, name := local(t, filepath.Join(dir, "one"))
		src := i.source()
		src.Serving = false
		_, err := backup.Create(t.Context(), src, p, name, backup.Options{})
		must(t, err)
		content, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		before := listFiles(t, i.dir)
		for _, damaged := range [][]byte{content[:len(content)-10], flipped(content, len(content)/2), flipped(content, len(content)-1)} {
			must(t, os.WriteFile(filepath.Join(dir, name), damaged, 0o600))
			if _, err := backup.Restore(t.Context(), target(i.url, i.dir), p, name, backup.RestoreOptions{Force: true}); !errors.Is(err, archive.ErrDamaged) {
				t.Errorf("restored: %v", err)
			}
			if _, err := backup.Verify(t.Context(), p, name, nil, nil); !errors.Is(err, archive.ErrDamaged) {
				t.Errorf("verified: %v", err)
			}
		}
		if rows, _, _ := i.processed(t); rows != 4000 {
			t.Errorf("%d rows", rows)
		}
		if after := listFiles(t, i.dir); !slices.Equal(after, before) {
			t.Errorf("files %v, before %v", after, before)
		}
	})
}

// A restore that is interrupted before it has changed a file leaves the installation
// as it was. One that has removed the tables of Postgres keeps the server from
// starting until it is repeated.
func TestInterruptedRestore(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url func() string) {
		i := open(t, url(), t.TempDir())
		fill(t, i)
		must(t, i.journal.Close(t.Context()))
		p, name := local(t, filepath.Join(t.TempDir(), "one"))
		src := i.source()
		src.Serving = false
		_, err := backup.Create(t.Context(), src, p, name, backup.Options{})
		must(t, err)
		before := listFiles(t, i.dir)
		ctx, cancel := context.WithCancel(t.Context())
		_, err = backup.Restore(ctx, target(i.url, i.dir), p, name, backup.RestoreOptions{Force: true, Progress: func(done, total int64) {
			if total > 0 && done == total { // the last part of the second pass
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("restore: %v", err)
		}
		incomplete := backup.CheckComplete(i.dir)
		if !i.db.Postgres() {
			if after := listFiles(t, i.dir); incomplete != nil || !slices.Equal(after, before) {
				t.Errorf("%v; files %v, before %v", incomplete, after, before)
			}
		} else if incomplete == nil {
			t.Error("a server would start on the empty database")
		}
		_, err = backup.Restore(t.Context(), target(i.url, i.dir), p, name, backup.RestoreOptions{Force: true})
		must(t, err)
		must(t, backup.CheckComplete(i.dir))
		if rows, _, _ := open(t, i.url, i.dir).processed(t); rows != 4000 {
			t.Errorf("%d rows", rows)
		}
	})
}

// An error other than a missing mark is reported: the advice for an interrupted restore
// would be wrong.
func TestCheckCompleteReportsOtherErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if err := backup.CheckComplete(file); err == nil || strings.Contains(err.Error(), "--force") {
		t.Errorf("%v", err)
	}
	must(t, backup.CheckComplete(filepath.Join(file+"s", "missing")))
}

func flipped(content []byte, at int) []byte {
	out := bytes.Clone(content)
	out[at] ^= 1
	return out
}

func listFiles(t *testing.T, dir string) (out []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name := filepath.Base(path); name != journal.MarkName {
			out = append(out, path)
		}
		return err
	}))
	return out
}

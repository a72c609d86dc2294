package backup_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/guidonhq/guidon/core/backup"
	"github.com/guidonhq/guidon/core/backup/archive"
	"github.com/guidonhq/guidon/core/backup/place"
)

// Check names the files in a backup with their sizes, and List the backups in a place.
func TestCheckAndList(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, url func() string) {
		i := open(t, url(), t.TempDir())
		fill(t, i)
		key, err := age.GenerateX25519Identity()
		must(t, err)
		dir := t.TempDir()
		p, _ := local(t, dir)
		if _, err := backup.Newest(t.Context(), p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a place without backups: %v", err)
		}
		src := i.source()
		secret := filepath.Join(t.TempDir(), "payload.key")
		must(t, os.WriteFile(secret, []byte("hush"), 0o600))
		src.Secrets = map[string]string{"payload.key": secret}
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		old, err := backup.Create(t.Context(), src, p, "", backup.Options{Now: func() time.Time { return at }})
		must(t, err)
		made, err := backup.Create(t.Context(), src, p, "", backup.Options{Recipients: []age.Recipient{key.Recipient()}})
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
		list, err := backup.List(t.Context(), p)
		if err != nil || len(list) != 2 || list[0].Name != made.Name || list[1].Name != old.Name || !list[1].At.Equal(at) || list[1].Bytes != old.Bytes {
			t.Errorf("%+v %v", list, err)
		}
		if name, err := backup.Newest(t.Context(), p); err != nil || name != made.Name {
			t.Errorf("%s %v", name, err)
		}
		if _, err := backup.Check(t.Context(), p, made.Name, nil, nil); !errors.Is(err, archive.ErrEncrypted) {
			t.Errorf("without the key: %v", err)
		}
		for _, one := range []*backup.Result{old, made} {
			content, err := backup.Check(t.Context(), p, one.Name, []age.Identity{key}, nil)
			must(t, err)
			encrypted := one == made
			files := map[string]int64{}
			for _, f := range content.Files {
				files[f.Name] = f.Bytes
			}
			if content.Encrypted != encrypted || content.Bytes != one.Bytes || content.Path != filepath.Join(dir, one.Name) {
				t.Errorf("%+v, made %+v", content, one)
			}
			if _, ok := files["secrets/payload.key"]; ok != encrypted || slices.Contains(content.Manifest.LeftOut, "payload.key") == encrypted {
				t.Errorf("files %v, left out %v", files, content.Manifest.LeftOut)
			}
			if files["journal/journal.db"] == 0 || files["database/guidon.db"]+files["database/tables/ingestion_warnings"] < 100_000 {
				t.Errorf("files %v", files)
			}
		}
	})
	p, _, err := place.Parse(t.TempDir()+"/absent/", place.S3{})
	must(t, err)
	if list, err := backup.List(t.Context(), p); err != nil || len(list) > 0 {
		t.Errorf("a missing directory: %v %v", list, err)
	}
}

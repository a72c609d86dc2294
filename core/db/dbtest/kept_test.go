package dbtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/guidonhq/guidon/migrations"
)

func TestHashFollowsTheSteps(t *testing.T) {
	t.Parallel()
	steps := func() []migrations.Step {
		return []migrations.Step{{Number: 1, Name: "a", Up: "CREATE TABLE a ()", Down: "DROP TABLE a"}, {Number: 2, Name: "b", Up: "SELECT 1", Down: "SELECT 1"}}
	}
	if first, second := hashSteps(steps()), hashSteps(steps()); first != second {
		t.Error("the same steps have two hashes")
	}
	seen := map[string]string{hashSteps(steps()): "no change"}
	for what, change := range map[string]func(s []migrations.Step) []migrations.Step{
		"another text": func(s []migrations.Step) []migrations.Step { s[1].Up = "SELECT 2"; return s },
		"another name": func(s []migrations.Step) []migrations.Step { s[1].Name = "c"; return s },
		"another step": func(s []migrations.Step) []migrations.Step {
			return append(s, migrations.Step{Number: 3, Name: "c", Up: "SELECT 1"})
		},
		"one removed": func(s []migrations.Step) []migrations.Step { return s[:1] },
	} {
		hash := hashSteps(change(steps()))
		if other, found := seen[hash]; found {
			t.Errorf("%s has the hash of %s", what, other)
		}
		seen[hash] = what
	}
	who := self()
	if migratedCluster(who, "", "15.1", "x").name == migratedCluster(who, "", "15.1", "y").name {
		t.Error("two schemas have one cluster")
	}
}

// Another schema gets a folder of its own; the oldest are removed, except those in use.
func TestOldKeptFoldersAreSwept(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	who := self()
	var made []string
	for i := range 6 {
		k := migratedSQLite(who, fmt.Sprint("schema", i))
		k.build = func(dir string) (string, error) {
			sweepKept(who, "guidon-migrated-sqlite-*")
			data := filepath.Join(dir, "data")
			return data, os.Mkdir(data, 0o700)
		}
		used := time.Now().Add(time.Duration(i-10) * time.Minute)
		err := k.use(who, func(path string) error {
			made = append(made, path)
			if i == 0 {
				inUse, err := lockDir(path, syscall.LOCK_SH)
				if err != nil {
					return err
				}
				t.Cleanup(func() { _ = inUse.Close() })
			}
			return os.Chtimes(path, used, used)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	entries, err := os.ReadDir(temporary)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, filepath.Join(temporary, e.Name()))
	}
	if want := append([]string{made[0]}, made[3:]...); !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}

// A folder that was swept between its making and its use is made again.
func TestSweptFolderIsMadeAgain(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	who, builds := self(), 0
	k := kept{name: "kept", build: func(dir string) (string, error) {
		builds++
		data := filepath.Join(dir, "data")
		return data, os.Mkdir(data, 0o700)
	}}
	for range 2 {
		if err := k.use(who, os.RemoveAll); err != nil {
			t.Fatal(err)
		}
	}
	if builds != 2 {
		t.Errorf("made %d times", builds)
	}
}

// A folder that lost files, to a cleaner of old ones for example, is made again.
func TestIncompleteFolderIsMadeAgain(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	who, builds := self(), 0
	k := kept{name: "kept", files: []string{"file"}, build: func(dir string) (string, error) {
		builds++
		data := filepath.Join(dir, "data")
		if err := os.Mkdir(data, 0o700); err != nil {
			return "", err
		}
		return data, os.WriteFile(filepath.Join(data, "file"), nil, 0o600)
	}}
	lose := func(path string) error { return os.Remove(filepath.Join(path, "file")) }
	for range 3 {
		if err := k.use(who, lose); err != nil {
			t.Fatal(err)
		}
	}
	if builds != 3 {
		t.Errorf("made %d times", builds)
	}
}

// Folders without a process are removed, those of running ones and young ones stay.
func TestSweepRemovesLitter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	paths := map[string]string{}
	for _, name := range []string{"litter", "young", "running"} {
		f, err := newFolder(self(), dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.remove)
		paths[name] = f.path
		if name != "running" {
			_ = f.lock.Close()
		}
		if name != "young" {
			if err := os.Chtimes(f.path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	sweepDirs(dir)
	for name, path := range paths {
		if _, err := os.Stat(path); os.IsNotExist(err) != (name == "litter") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDiskIsNotMemory(t *testing.T) {
	t.Parallel()
	if hasRoom(filepath.Join(t.TempDir(), "missing")) {
		t.Error("a missing folder has room")
	}
	if dir := t.TempDir(); hasRoom(dir) { // only its owner may use it
		t.Errorf("%s has room for every account", dir)
	}
}

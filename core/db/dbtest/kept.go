package dbtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// keptVersions is how many migrated clusters of an account stay, and as many SQLite files, so
// that branches with different migrations can be tested in turns.
const keptVersions = 3

// kept is a folder, of a cluster that does not run or with a SQLite file, in the directory
// for temporary files. The first process that needs it makes it; all others copy it.
type kept struct {
	name  string                                    // says everything that the content depends on
	build func(dir string) (data string, err error) // makes the folder below dir

	// files are some of the folder. A cleaner of old files may have removed them and left
	// the folder, which is then made again.
	files []string
}

// use calls fn with the path of the folder, which nobody removes in the meantime.
func (k kept) use(who account, fn func(path string) error) error {
	for {
		path, err := k.make(who)
		if err != nil {
			return err
		}
		lock, err := lockDir(path, syscall.LOCK_SH)
		if errors.Is(err, fs.ErrNotExist) {
			continue // swept at this moment
		}
		if err != nil {
			return err
		}
		now := time.Now()
		_ = os.Chtimes(path, now, now) // only sweepKept reads it
		err = fn(path)
		_ = lock.Close()
		return err
	}
}

// copyTo copies the folder, which becomes data, as the account.
func (k kept) copyTo(who account, data string) error {
	return k.use(who, func(path string) error {
		out, err := who.command(filepath.Dir(data), "cp", "-a", path, data).CombinedOutput()
		if err != nil {
			return fmt.Errorf("copy %s: %w: %s", path, err, out)
		}
		return nil
	})
}

// make returns the path of the folder. Processes that make it at the same time build
// one each; the first one to finish keeps its own.
func (k kept) make(who account) (string, error) {
	path := filepath.Join(os.TempDir(), k.name)
	if owns(who, path) {
		if k.isComplete(path) {
			return path, nil
		}
		if err := discard(who, path); err != nil {
			return "", fmt.Errorf("remove the incomplete %s: %w", path, err)
		}
	}

	aside, err := newFolder(who, os.TempDir())
	if err != nil {
		return "", err
	}
	defer aside.remove()
	data, err := k.build(aside.path)
	if err != nil {
		return "", err
	}
	if err := os.Rename(data, path); err != nil && !owns(who, path) {
		return "", fmt.Errorf("keep %s: %w", path, err)
	}
	return path, nil
}

func (k kept) isComplete(path string) bool {
	for _, file := range k.files {
		if _, err := os.Stat(filepath.Join(path, file)); err != nil {
			return false
		}
	}
	return true
}

// discard removes a folder that nobody is copying, or waits for those. It goes in one step,
// so that nobody copies what is left if this process is killed.
func discard(who account, path string) error {
	lock, err := lockDir(path, syscall.LOCK_EX)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process was faster
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	aside, err := newFolder(who, os.TempDir())
	if err != nil {
		return err
	}
	defer aside.remove()
	return os.Rename(path, filepath.Join(aside.path, "data"))
}

// owns reports whether path is a folder that only the account can have made.
func owns(who account, path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == who.uid
}

var clusterFiles = []string{"PG_VERSION", filepath.Join("global", "pg_control")}

// initialised is a cluster as initdb makes it, with the settings of a new installation.
func initialised(who account, bin, version string) kept {
	return kept{
		name:  fmt.Sprintf("guidon-initdb-%s-%d", version, who.uid),
		files: clusterFiles,
		build: func(dir string) (string, error) {
			data, err := initdb(who, bin, dir)
			if err != nil {
				return "", err
			}
			return data, syncFiles(who, bin, data)
		},
	}
}

// migratedCluster is a cluster that has a migrated template.
func migratedCluster(who account, bin, version, schema string) kept {
	name := func(version, schema string) string {
		return fmt.Sprintf("guidon-migrated-postgres-%s-%d-%s", version, who.uid, schema)
	}
	return kept{
		name:  name(version, schema),
		files: clusterFiles,
		build: func(dir string) (string, error) {
			sweepKept(who, name("*", "*"))

			// The copy is smaller with small segments of the write-ahead log.
			data, err := initdb(who, bin, dir, "--wal-segsize=1")
			if err != nil {
				return "", err
			}
			c, err := launch(who, bin, dir, stopAndKeep, nil)
			if err != nil {
				return "", err
			}
			_, err = newServer(c.url()).prepare(schema)
			if err = errors.Join(err, c.stop()); err != nil {
				return "", err
			}
			return data, syncFiles(who, bin, data)
		},
	}
}

// migratedSQLite is a folder with a migrated SQLite file.
func migratedSQLite(who account, schema string) kept {
	name := func(schema string) string { return fmt.Sprintf("guidon-migrated-sqlite-%d-%s", who.uid, schema) }
	return kept{
		name:  name(schema),
		files: []string{sqliteFile},
		build: func(dir string) (string, error) {
			sweepKept(who, name("*"))
			data := filepath.Join(dir, "data")
			return data, migrate("sqlite:" + filepath.Join(data, sqliteFile))
		},
	}
}

func initdb(who account, bin, dir string, options ...string) (data string, err error) {
	data = filepath.Join(dir, "data")
	options = append(options, "--pgdata="+data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	out, err := who.command(dir, filepath.Join(bin, "initdb"), options...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("initialise a cluster: %w: %s", err, out)
	}
	return data, nil
}

// syncFiles writes a cluster to disk: after a power cut a kept one is complete or not there.
func syncFiles(who account, bin, data string) error {
	out, err := who.command("/", filepath.Join(bin, "initdb"), "--sync-only", "--pgdata="+data).CombinedOutput()
	if err != nil {
		return fmt.Errorf("sync a cluster: %w: %s", err, out)
	}
	return nil
}

// sweepKept removes the kept folders of the account that match the pattern, except those
// that were used last, to make room for a new one, and those that are being copied.
func sweepKept(who account, pattern string) {
	type candidate struct {
		path string
		used time.Time
	}
	var found []candidate
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), pattern)) // fails on a bad pattern only
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && owns(who, path) {
			found = append(found, candidate{path, info.ModTime()})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return b.used.Compare(a.used) })

	for _, c := range found[min(len(found), keptVersions-1):] {
		lock, err := lockDir(c.path, syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil {
			continue
		}
		// Removed in one step, so that nobody copies what is left if this process is killed.
		if aside, err := newFolder(who, os.TempDir()); err == nil {
			_ = os.Rename(c.path, filepath.Join(aside.path, "data"))
			aside.remove()
		}
		_ = lock.Close()
	}
}

// versionOf is the 15.18 of a server's binaries.
func versionOf(who account, bin string) (string, error) {
	version, err := who.command("/", filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask postgres for its version: %w", err)
	}
	fields := strings.Fields(string(version)) // postgres (PostgreSQL) 15.18 (…)
	if len(fields) < 3 {
		return "", fmt.Errorf("postgres has an odd version: %q", version)
	}
	return fields[2], nil
}

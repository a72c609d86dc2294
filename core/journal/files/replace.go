package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// CopyPath is the name of a new file while records are copied into it. A start
// removes it.
func CopyPath(path string) string { return path + ".copy" }

// nextPath is the name of a new file that is complete. It takes the place of the
// file at path, also if the process ends before.
func nextPath(path string) string { return path + ".next" }

// Replace keeps a SQLite file and its logs under the name kept, and moves the
// complete file at CopyPath to its place. The new file must be synced and have no
// logs, and no connection may be open to either. A process that ends at any moment
// leaves either the old file, or what FinishReplace completes.
func Replace(path, kept string) error {
	if err := os.Rename(CopyPath(path), nextPath(path)); err != nil {
		return err
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return moveNext(path, kept)
}

// moveNext moves the logs before the file: SQLite would apply a log that it finds
// beside the new file.
func moveNext(path, kept string) error {
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+suffix, kept+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Rename(nextPath(path), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// FinishReplace completes a replacement that a process began, and removes an
// incomplete copy. It returns the name of the damaged file, "" if there was nothing
// to complete.
func FinishReplace(path string) (kept string, err error) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(CopyPath(path) + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	if _, err := os.Stat(nextPath(path)); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	kept = AsidePath(path)
	return kept, moveNext(path, kept)
}

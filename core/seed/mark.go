package seed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// markName is the file in the data directory while a seed is under way.
const markName = "seed.incomplete"

// Mark notes in dir that a seed with a file of that name begins. The function that it
// returns ends the note; call it when everything is made, or nothing.
func Mark(dir, name string) (done func() error, err error) {
	path := filepath.Join(dir, markName)
	if err := os.WriteFile(path, []byte(name+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("note the begin of the seed: %w", err)
	}
	return func() error { return os.Remove(path) }, nil
}

// Incomplete fails if a seed began in dir and did not end.
func Incomplete(dir string) error {
	path := filepath.Join(dir, markName)
	name, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("an earlier start ended before it had made everything of the seed file %q: remove the database, or delete %s to keep what was made", string(name[:max(len(name)-1, 0)]), path)
}

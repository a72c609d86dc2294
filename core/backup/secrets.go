package backup

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/guidonhq/guidon/core/backup/archive"
)

// writeSecrets writes the files with secrets, or returns the names of those that an
// archive in clear leaves out.
func writeSecrets(a *archive.Writer, secrets map[string]string, encrypted bool) (leftOut []string, err error) {
	leftOut = []string{}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		content, err := os.ReadFile(secrets[name])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !encrypted {
			leftOut = append(leftOut, name)
			continue
		}
		f := a.File(secretPrefix + name)
		_, err = f.Write(content)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	return leftOut, nil
}

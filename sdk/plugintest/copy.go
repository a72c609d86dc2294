package plugintest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// copied returns the target with its executable replaced by a copy in an empty
// directory below dir, and what removes it. The server runs such a copy of the one file
// that its config names. A command line with arguments is left alone: a config of the
// server cannot name one.
func copied(t Target, dir string) (Target, func(), error) {
	if len(t.Command) != 1 {
		return t, func() {}, nil
	}
	place, err := os.MkdirTemp(dir, "c")
	if err != nil {
		return t, func() {}, err
	}
	remove := func() { _ = os.RemoveAll(place) }
	path := filepath.Join(place, "plugin")
	if err := copyFile(lookPath(t.Command[0]), path); err != nil {
		remove()
		return t, func() {}, fmt.Errorf("copy %s: %w", t.Command[0], err)
	}
	t.Command = []string{path}
	return t, remove, nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o500)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}

package candidate

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Copied returns the command line with its executable replaced by a copy in an empty
// directory below dir, and what removes it. The server runs such a copy of the one file
// that its config names. A command line with arguments is left alone: a config of the
// server cannot name one.
func Copied(args []string, dir string) ([]string, func(), error) {
	if len(args) != 1 {
		return args, func() {}, nil
	}
	place, err := os.MkdirTemp(dir, "c")
	if err != nil {
		return args, func() {}, err
	}
	remove := func() { _ = os.RemoveAll(place) }
	path := filepath.Join(place, "plugin")
	if err := copyFile(lookPath(args[0]), path); err != nil {
		remove()
		return args, func() {}, fmt.Errorf("copy %s: %w", args[0], err)
	}
	return []string{path}, remove, nil
}

func lookPath(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return name
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
